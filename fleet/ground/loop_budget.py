"""A limit on the work of one iteration of the event loop, so that many messages at once do not delay timers."""

import asyncio
from collections import OrderedDict, deque

FRAME_BYTES = 64 * 1024
"""Parsed in one iteration, as `parsing_cost` of `fleet/wire/json_text.py` counts: 64 KB of text or 1,024 values."""


class LoopBudget:
    """Lets a limited amount of work begin in one iteration of the event loop; the rest waits for the next ones.

    asyncio runs everything that is ready before it looks at its timers. Without a limit, a thousand frames of 100 KB
    that were read at once are parsed in one iteration, and the leases of the shards expire meanwhile. The caller bounds
    how much waits.

    Work of one key is done in its order. The keys that wait take turns, one piece of work each: however much waits
    under one key, it delays the work of another key by one piece at most.

    Args:
        most: Bytes; one piece of work that is larger has an iteration to itself.
    """

    def __init__(self, most: int = FRAME_BYTES) -> None:
        self._most = most
        self._left = most
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()
        self._last = ""
        """The key whose work began last."""
        self._scheduled = False

    @property
    def waiting(self) -> int:
        """How many pieces of work wait."""
        return sum(map(len, self._waiting.values()))

    def take_now(self, size: int, key: str = "") -> bool:
        """Begin work if it need not wait; else nothing is taken, and `take` waits."""
        self._schedule()
        if self._waiting or not self._fits(size):
            return False
        self._last = key
        return True

    async def take(self, size: int, key: str = "") -> None:
        """Return when work on `size` bytes may begin; at once while the iteration has room.

        Args:
            size: Bytes.
            key: Whose work it is, such as an address.
        """
        if self.take_now(size, key):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append((size, turn))
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
        while self._waiting and self._begin_next():
            pass
        if self._left < self._most:
            self._schedule()

    def _begin_next(self) -> bool:
        """Let the next work begin if it fits; return whether the one behind it may be tried."""
        if self._last in self._waiting:
            # Moved now, not when its work began: a key that began to wait since then comes before it.
            self._waiting.move_to_end(self._last)
        key, line = next(iter(self._waiting.items()))
        size, turn = line[0]
        if not turn.done():
            if not self._fits(size):
                return False
            turn.set_result(None)
            self._last = key
        line.popleft()
        if not line:
            del self._waiting[key]
        return True
