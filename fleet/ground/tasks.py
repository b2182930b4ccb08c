"""Run coroutines, and contain their failures."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager

from fleet.ground.errors import FleetError, Overloaded, ProviderError
from fleet.ground.metrics import providers

log = logging.getLogger(__name__)

_INSIST_SECONDS = 2.0
"""Pause before work that goes on is cancelled again."""

Ended = asyncio.Future[Exception | None]
"""The end of isolated work: its failure, or None."""


async def isolate(what: str, work: Awaitable[None], expected: tuple[type[Exception], ...] = ()) -> Exception | None:
    """Await `work`; return its failure instead of raising it, None when it succeeded.

    Broad because a failure in the work of one device must not cancel the task group of the others.

    Args:
        what: Names the work in the log.
        work: An awaitable that was not awaited yet.
        expected: Failures that the caller handles; all others are logged here.
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


@contextmanager
def provider_errors(provider: str) -> Iterator[None]:
    """Raise every failure of an adapter or plugin as a `ProviderError`, so that it ends in an apology.

    A `ProviderError` or `Overloaded` passes as it is. Anything else is a fault of the adapter: logged and counted.

    Args:
        provider: One of `providers.PROVIDERS`.
    """
    try:
        yield
    except (ProviderError, Overloaded):
        raise
    except Exception as error:
        log.exception("provider crashed", extra={"provider": provider})
        providers.errors.add(provider, "engine")
        raise ProviderError(f"{provider.upper()}: {type(error).__name__}", retryable=False, kind="engine") from error


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
    """Run `work` in a loop, with growing pauses; a `FleetError` or an `OSError` is logged, and the loop goes on.

    Args:
        what: Names the work in the log.
        work: Makes one attempt; also after a return the next attempt follows.
        backoff: Pauses between attempts; the work resets it after a success.
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
    """Run a coroutine to its end even if the caller is cancelled meanwhile; then raise the cancellation.

    Args:
        what: Names the task.
        work: Must have its own time limit.
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


async def end_with_caller(what: str, work: Coroutine[None, None, None]) -> None:
    """Run a coroutine in a task of its own; if the caller is cancelled, cancel that until it has ended.

    For work in libraries: anyio loses a cancellation that comes as one of its scopes ends, and others wait for a server
    while they clean up.

    Args:
        what: Names the task.
        work: May lose some cancellations, but not all.
    """
    task = asyncio.get_running_loop().create_task(work, name=what)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        if cancelled:
            task.cancel()
        try:
            await asyncio.wait([task], timeout=_INSIST_SECONDS if cancelled else None)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    task.result()


def single_exception(group: BaseException) -> BaseException:
    """Return the exception inside a group of one, so that callers see the exception that a block raised."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group
