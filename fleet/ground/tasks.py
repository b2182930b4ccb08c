"""Running coroutines so that a failure stays where it belongs."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

from fleet.ground.errors import FleetError

log = logging.getLogger(__name__)


async def isolate(what: str, work: Awaitable[None], expected: tuple[type[Exception], ...] = ()) -> Exception | None:
    """Await `work`; return its failure instead of raising it, None when it succeeded.

    The one place with a broad `except`: the failure of one device's work must not end its siblings' task group.

    Args:
        what: Names the work in the log.
        work: The work, not yet awaited.
        expected: Failures that the caller handles; every other one is logged here.
    """
    try:
        await work
    except expected as error:
        return error
    except FleetError as error:
        log.warning("work failed", extra={"work": what, "reason": str(error), "kind": type(error).__name__})
        return error
    except Exception as error:
        log.exception("work crashed", extra={"work": what})
        return error
    return None


class Backoff:
    """Growing pauses with jitter between attempts, in seconds."""

    def __init__(self, first: float = 0.2, limit: float = 10.0) -> None:
        self._first = first
        self._limit = limit
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    async def pause(self) -> None:
        """Sleep between half and all of the current step, then double the step up to the limit."""
        step = self._next
        self._next = min(step * 2, self._limit)
        await asyncio.sleep(step * random.uniform(0.5, 1.0))


async def keep_running(what: str, work: Callable[[], Awaitable[None]], backoff: Backoff | None = None) -> None:
    """Run `work` for ever, starting it again with growing pauses when it fails with a `FleetError` or an `OSError`.

    Args:
        what: Names the work in the log.
        work: Makes one attempt; a return counts as an end that wants a new attempt.
        backoff: Pauses between attempts; the work resets it when it has got through.
    """
    pauses = backoff or Backoff()
    while True:
        try:
            await work()
        except (FleetError, OSError) as error:
            log.warning("will try again", extra={"work": what, "reason": str(error) or type(error).__name__})
        await pauses.pause()


@asynccontextmanager
async def running(what: str, work: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run `work` beside the block and cancel it at the block's end; its failure ends the block.

    Args:
        what: Names the task.
        work: Runs until cancelled.
    """
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work(), name=what)
        try:
            yield
        finally:
            task.cancel()


async def finish(what: str, work: Coroutine[None, None, None]) -> None:
    """Do something to its end, even if whoever waits for it is cancelled meanwhile; that comes out afterwards.

    Args:
        what: Names the task.
        work: Has a limit in time of its own.
    """
    task = asyncio.get_running_loop().create_task(work, name=what)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    task.result()


def sole(group: BaseException) -> BaseException:
    """Return the one failure inside a group of one, so that a block's own exceptions come out as they were raised."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group
