"""A queue that delivers each item when it is due."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Generic, TypeVar

MOST = 1000

T = TypeVar("T")


class DelayLine(Generic[T]):
    """Delivers each item at its time, the earliest first; an item is lost when 1000 are under way.

    Args:
        clock: Monotonic seconds, those of the event loop.
        deliver: Takes an item.
    """

    def __init__(self, clock: Callable[[], float], deliver: Callable[[T], Awaitable[None]]) -> None:
        self._clock = clock
        self._deliver = deliver
        self._waiting: list[tuple[float, int, T]] = []
        self._number = count()
        self._changed = asyncio.Event()
        self._open = True

    def put(self, thing: T, due: float) -> bool:
        """Queue an item; return False when it was lost."""
        if not self._open or len(self._waiting) >= MOST:
            return False
        heapq.heappush(self._waiting, (due, next(self._number), thing))
        self._changed.set()
        return True

    def close(self) -> None:
        """Drop what is queued, and end `run`."""
        self._open = False
        self._waiting.clear()
        self._changed.set()

    async def run(self) -> None:
        """Deliver until closed."""
        while self._open:
            try:
                async with asyncio.timeout_at(self._waiting[0][0] if self._waiting else None):
                    await self._changed.wait()
                self._changed.clear()
            except TimeoutError:
                await self.advance(self._clock())

    async def advance(self, now: float) -> None:
        """Deliver what is due by now."""
        while self._waiting and self._waiting[0][0] <= now:
            await self._deliver(heapq.heappop(self._waiting)[2])
