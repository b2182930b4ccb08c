"""Work beside everything else, whose failure is logged."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from fleet.ground.tasks import isolate


class BackgroundTasks:
    """Starts work inside a task group that is open for a while; it ends with the group."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    @property
    def open(self) -> bool:
        """Whether work may be started."""
        return self._group is not None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[asyncio.TaskGroup]:
        """Open a task group; the block's end waits for all that was started in it."""
        try:
            async with asyncio.TaskGroup() as self._group:
                yield self._group
        finally:
            self._group = None

    def start(self, what: str, work: Coroutine[None, None, None]) -> asyncio.Task[object]:
        """Start work whose failure is logged.

        Args:
            what: Names the work in the log.
            work: Not yet awaited.

        Raises:
            RuntimeError: The group is not open; the work was closed.
        """
        if self._group is None:
            work.close()
            raise RuntimeError(f"nothing runs that could do this: {what}")
        task = self._group.create_task(isolate(what, work), name=what)
        # A task that is cancelled before it has begun never awaits its work.
        task.add_done_callback(lambda _: work.close())
        return task
