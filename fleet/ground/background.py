"""Background tasks whose failures are logged."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from fleet.ground.tasks import isolate


class BackgroundTasks:
    """Starts tasks in a task group that lives as long as a block."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    @property
    def open(self) -> bool:
        """Whether tasks may be started."""
        return self._group is not None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[asyncio.TaskGroup]:
        """Open a task group; the end of the block waits for its tasks."""
        try:
            async with asyncio.TaskGroup() as self._group:
                yield self._group
        finally:
            self._group = None

    def start(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        """Start a task; log its failure.

        Args:
            what: Names the work in the log.
            work: A coroutine that was not awaited yet.

        Raises:
            RuntimeError: The group is not open. The coroutine is closed.
        """
        if self._group is None:
            work.close()
            raise RuntimeError(f"the task group is not open: {what}")
        task = self._group.create_task(isolate(what, work), name=what)
        # A task that is cancelled before its first step never awaits its coroutine.
        task.add_done_callback(lambda _: work.close())
        return task
