"""Parsing that does not hold up the event loop, however many messages have come at once."""

import asyncio
from collections import deque

FRAME_BYTES = 64 * 1024
"""Of `parsing_cost`, what is parsed between two looks at timers and sockets: 64 KB of text, or 1,024 values."""


class LoopBudget:
    """Lets so many bytes of work begin in one iteration of the event loop; the rest waits for the next, in order.

    asyncio runs everything that is ready before it looks at its timers: a thousand frames of 100 KB that were read at
    once would be parsed in one go, and the leases would lapse meanwhile. What waits is bounded by who brings it.

    Args:
        most: Of `parsing_cost`, in bytes; one piece of work that is larger has an iteration to itself.
    """

    def __init__(self, most: int = FRAME_BYTES) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._scheduled = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def take(self, size: int) -> None:
        """Return when work on so many bytes may begin; at once while there is room."""
        self._schedule()
        if not self._waiting and self._fits(size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        await turn

    def _fits(self, size: int) -> bool:
        if self._left < size and self._left < self._most:
            return False
        self._left -= size
        return True

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._scheduled = False
        self._left = self._most
        while self._waiting and (self._waiting[0][1].cancelled() or self._fits(self._waiting[0][0])):
            _, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._left < self._most:
            self._schedule()
