"""Run blocking engines in threads of their own, with a bounded queue, so that the event loop never blocks."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fleet.core.recent_use import RecentUse
from fleet.ground.errors import FleetError, Overloaded, ProviderError
from fleet.ground.metrics import providers
from fleet.ground.requester import requester

T = TypeVar("T")

VOICE_NICENESS = 5
"""Of voices: when the processor is short of time, recognition and turn detection go first, since a user waits for them,
while a voice is mostly ahead of what plays."""


@dataclass(eq=False, slots=True)
class _Piece:
    """Work, for whom it is, and how long it may take."""

    work: Callable[[], Any]
    who: str
    expected: float
    future: Future[Any] = field(default_factory=Future)


class Engine:
    """A few threads and the work that waits for them.

    Who has used the engine least lately (`fleet.ground.requester`), with what is asked for now, goes first and is the
    last one to be refused. So somebody who asks again and again, or for much, makes others wait for one piece of work,
    not for a queue of them.

    Args:
        name: Of the threads, in errors and in metrics.
        threads: Pieces of work that run at once.
        queue: Pieces of work that may wait; when it is full, one is refused.
        niceness: How much the threads give way to others; only Linux has it for threads.
    """

    def __init__(self, name: str, threads: int, queue: int, niceness: int = 0) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name, initializer=_give_way, initargs=(niceness,))
        self._places = threads + queue
        self._work: set[_Piece] = set()
        """What runs or waits; each takes a place until it is done."""
        self._waiting: dict[_Piece, None] = {}
        self._use = RecentUse()
        self._lock = threading.Lock()
        """Of what waits and of the use, which the threads change, too."""
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
        piece = _Piece(work, requester(), expected)
        self._admit(piece)
        future: asyncio.Future[T] = asyncio.wrap_future(piece.future)
        self._pool.submit(self._run_next)
        try:
            await asyncio.wait({future}, timeout=timeout)
            return self._outcome(future)
        finally:
            # Cancelled directly, because through `future` the place would become free one loop iteration later.
            piece.future.cancel()
            future.cancel()

    def close(self) -> None:
        """Refuse new work and drop the work that waits; work that runs ends by itself."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for piece in list(self._waiting):
            piece.future.cancel()

    def _admit(self, piece: _Piece) -> None:
        """Give a piece of work a place, if need be that of one that waits."""
        refused: _Piece | None = None
        with self._lock:
            if len(self._work) >= self._places:
                refused = max((piece, *self._waiting), key=self._used)  # of equals the newcomer
                self._waiting.pop(refused, None)
            if refused is not piece:
                self._work.add(piece)
                self._waiting[piece] = None
        if refused is not None:
            providers.errors.add(self._name, "overloaded")
            error = Overloaded(f"{self._name}: too much work waits")
            if refused is piece:
                raise error
            if refused.future.set_running_or_notify_cancel():
                refused.future.set_exception(error)
        piece.future.add_done_callback(lambda _: self._leave(piece))

    def _leave(self, piece: _Piece) -> None:
        with self._lock:
            self._waiting.pop(piece, None)
            self._work.discard(piece)

    def _used(self, piece: _Piece) -> float:
        return piece.expected + (self._use.amount(piece.who, time.monotonic()) if piece.who else 0.0)

    def _run_next(self) -> None:
        """Run the piece of work that goes first. Runs in a thread, once for each piece that was admitted."""
        with self._lock:
            piece = min(self._waiting, key=self._used, default=None)
            if piece is None:
                return
            del self._waiting[piece]
        if not piece.future.set_running_or_notify_cancel():
            return
        begun = time.monotonic()
        try:
            result = piece.work()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            self._charge(piece, begun)
            piece.future.set_exception(error)
        else:
            self._charge(piece, begun)
            piece.future.set_result(result)

    def _charge(self, piece: _Piece, begun: float) -> None:
        if piece.who:
            now = time.monotonic()
            with self._lock:
                self._use.add(piece.who, now - begun, now)

    def _outcome(self, future: asyncio.Future[T]) -> T:
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


def _give_way(niceness: int) -> None:
    """Let the threads of other engines go before this one."""
    if niceness and sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + niceness, 19))
