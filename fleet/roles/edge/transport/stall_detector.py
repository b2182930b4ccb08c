"""Detect that this process stood still: the process or its machine was stopped or starved."""

import asyncio
import logging
import math
from collections.abc import Callable

log = logging.getLogger(__name__)

BEAT_SECONDS = 0.25
"""Time between two beats when nothing else happens."""
STALL_SECONDS = 0.5
"""A longer time without a beat is a stall, not only load."""
LONG_STALL_SECONDS = 4.0
"""After a longer stall workers may have declared this edge dead, and another edge may serve its devices."""
_REMEMBERED = 3.0


class StallDetector:
    """Detects a stall at the first beat after it, before the process acts on outdated state.

    Args:
        now: The time.
        on_long_stall: Called after a stall of at least LONG_STALL_SECONDS.
    """

    def __init__(self, now: float, on_long_stall: Callable[[], None]) -> None:
        self._on_lapse = on_long_stall
        self._beat = now
        self._ended = -math.inf
        self._seconds = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self.beat(clock())
            await asyncio.sleep(BEAT_SECONDS)

    def beat(self, now: float) -> None:
        """Note that the process runs; handle a stall that has just ended."""
        still, self._beat = now - self._beat, now
        if still > STALL_SECONDS:
            log.warning("the edge stood still", extra={"seconds": round(still, 1)})
            self._ended, self._seconds = now, still
            if still >= LONG_STALL_SECONDS:
                self._on_lapse()

    def waited(self, now: float) -> float:
        """Return for how many seconds a packet that is read now may have waited during a stall."""
        return self._seconds if now - self._ended <= _REMEMBERED else 0.0
