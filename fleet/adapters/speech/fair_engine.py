"""An engine whose time many share: who has used it least goes first."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fleet.adapters.speech.engines import Engine
from fleet.core.recent_use import RecentUse
from fleet.ground.requester import requester

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Piece:
    """Work, its requester, and how long it may take."""

    work: Callable[[], Any]
    who: str
    expected: float
    future: Future[Any] = field(default_factory=Future)


class FairEngine(Engine):
    """Lets the one go first who has used it least lately (`fleet.ground.requester`), with what is asked for now.

    He is also the last one to be refused. So somebody who asks again and again, or for much, makes others wait for one
    piece of work, not for a queue of them.

    Args:
        name: See `Engine`.
        threads: See `Engine`.
        queue: Pieces of work that may wait; when it is full, one of them is refused.
        niceness: See `Engine`.
    """

    runs_models = True

    def __init__(self, name: str, threads: int, queue: int, niceness: int = 0) -> None:
        super().__init__(name, threads, queue, niceness)
        self._waiting: dict[Future[Any], _Piece] = {}
        self._use = RecentUse()
        self._lock = threading.Lock()
        """Of what waits and of the use, which the threads change, too."""

    def close(self) -> None:
        """Refuse further work and drop the work that waits; work that runs ends by itself."""
        super().close()
        for future in list(self._waiting):
            future.cancel()

    def _begin(self, work: Callable[[], T], expected: float) -> Future[T]:
        piece = _Piece(work, requester(), expected)
        refused: _Piece | None = None
        with self._lock:
            if len(self._work) >= self._places:
                refused = max((piece, *self._waiting.values()), key=self._rank)  # of equals the newcomer
                self._waiting.pop(refused.future, None)
            if refused is not piece:
                self._work.add(piece.future)
                self._waiting[piece.future] = piece
        if refused is piece:
            raise self._overloaded()
        if refused is not None and refused.future.set_running_or_notify_cancel():
            refused.future.set_exception(self._overloaded())
        piece.future.add_done_callback(self._leave)
        self._pool.submit(self._run_next)
        return piece.future

    def _leave(self, future: Future[Any]) -> None:
        with self._lock:
            self._waiting.pop(future, None)
            self._work.discard(future)

    def _rank(self, piece: _Piece) -> float:
        return piece.expected + (self._use.amount(piece.who, time.monotonic()) if piece.who else 0.0)

    def _run_next(self) -> None:
        """Run the piece of work that goes first. Runs in a thread, once for each piece that was given a place."""
        with self._lock:
            piece = min(self._waiting.values(), key=self._rank, default=None)
            if piece is None:
                return
            del self._waiting[piece.future]
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
