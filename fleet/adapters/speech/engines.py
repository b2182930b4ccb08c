"""Run blocking engines in threads of their own, with a bounded queue, so that the event loop never blocks."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from fleet.ground.allocator import return_freed_memory
from fleet.ground.errors import FleetError, Overloaded, ProviderError
from fleet.ground.metrics import providers

T = TypeVar("T")

VOICE_NICENESS = 5
"""Of voices: when the processor is short of time, recognition and turn detection go first, since a user waits for them,
while a voice is mostly ahead of what plays."""


class Engine:
    """A few threads and the work that waits for them, in its order.

    Args:
        name: Of the threads, in errors and in metrics.
        threads: Pieces of work that run at once.
        queue: Pieces of work that may wait; when it is full, `run` refuses.
        niceness: How much the threads give way to others; only Linux has it for threads.
    """

    runs_models: ClassVar[bool] = False
    """Whether its work uses large buffers, whose memory goes back to the system after each piece of work. For a codec's
    small ones, which the next piece of work needs again, that would cost a tenth of an edge's CPU time with audio."""

    def __init__(self, name: str, threads: int, queue: int, niceness: int = 0) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=_give_way, initargs=(niceness,))
        self._places = threads + queue
        self._work: set[Future[Any]] = set()
        """What runs or waits; each takes a place until it is done."""
        self._closed = False

    @property
    def has_room(self) -> bool:
        """Whether more than half of the places are free."""
        return 2 * len(self._work) < self._places

    async def run(self, work: Callable[[], T], timeout: float, expected: float = 0.0) -> T:
        """Run `work` in a thread and return its result.

        Work that has begun runs to its end and keeps its place, also if the caller is cancelled or times out.

        Args:
            work: May block; it is not started if the caller was cancelled or timed out before.
            timeout: Seconds from now, with the time in the queue.
            expected: Seconds that the work may take.

        Raises:
            Overloaded: The queue is full.
            ProviderError: The work failed, took too long, or the engine is closed.
        """
        if self._closed:
            raise ProviderError(f"{self._name}: closed", retryable=False)
        running = self._begin(work, expected)
        # One callback and one future: `asyncio.wrap_future` and `asyncio.wait` need six, and three turns of the loop.
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        running.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(_wake, ended))
        if self.runs_models:
            # After the caller was told, in the engine's thread.
            running.add_done_callback(_tidy)
        limit = loop.call_later(timeout, _wake, ended)
        try:
            await ended
            return self._outcome(running)
        finally:
            limit.cancel()
            running.cancel()

    def close(self) -> None:
        """Refuse new work and drop the work that waits; work that runs ends by itself."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, work: Callable[[], T], expected: float) -> Future[T]:
        """Give work a place; return its future."""
        if len(self._work) >= self._places:
            raise self._overloaded()
        running = self._pool.submit(work)
        self._work.add(running)
        running.add_done_callback(self._work.discard)
        return running

    def _overloaded(self) -> Overloaded:
        providers.errors.add(self._name, "overloaded")
        return Overloaded(f"{self._name}: too much work waits")

    def _outcome(self, future: Future[T]) -> T:
        if not future.done():
            providers.errors.add(self._name, "silent")
            raise ProviderError(f"{self._name}: timed out", retryable=True)
        if future.cancelled():
            raise ProviderError(f"{self._name}: closed", retryable=False)
        error = future.exception()
        if error is None or isinstance(error, FleetError):
            return future.result()
        providers.errors.add(self._name, "engine")
        raise ProviderError(f"{self._name}: {type(error).__name__}", retryable=False) from error


def _wake(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _tidy(running: Future[Any]) -> None:
    if not running.cancelled():
        return_freed_memory()


def _give_way(niceness: int) -> None:
    """Let the threads of other engines go before this one."""
    if niceness and sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + niceness, 19))
