"""How late this process runs: the audit must not blame the server for a stalled simulation."""

import asyncio
from collections import deque
from collections.abc import Callable

_PERIOD = 0.02
_LATE = 0.008
_GRACE = 0.03
_REMEMBERED = 200


class LoopLag:
    """Measures how late a timer of 20 ms fires.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self._due: float | None = None
        self.worst = 0.0

    def stalled_since(self, since: float) -> float:
        """Return for how many seconds this process was stalled from `since` on."""
        past = sum(late for ended, late in self._stalls if ended + _GRACE >= since)
        # After a stall the loop reads sockets first: this timer fires only then.
        present = 0.0 if self._due is None else self._clock() - self._due
        return past + present if present > _LATE else past

    def record(self, late: float) -> None:
        """Take note of a timer that fired so many seconds late."""
        self.worst = max(self.worst, late)
        if late > _LATE:
            self._stalls.append((self._clock(), late))

    async def run(self) -> None:
        """Measure until cancelled."""
        try:
            while True:
                self._due = due = self._clock() + _PERIOD
                await asyncio.sleep(_PERIOD)
                self.record(self._clock() - due)
        finally:
            self._due = None
