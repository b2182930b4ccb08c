"""When this process stood still: it was stopped or starved, or its machine was."""

import asyncio
import logging
import math
from collections.abc import Callable

log = logging.getLogger(__name__)

BEAT_SECONDS = 0.25
"""Time between two beats when nothing else happens."""
STILL_SECONDS = 0.5
"""A longer time without a beat is more than a busy moment."""
LAPSE_SECONDS = 4.0
"""From then on workers may have taken this edge for dead, and its devices may speak through another."""
_REMEMBERED = 3.0


class StallDetector:
    """Notices it at the first sign of life, before anything is done on what was true before.

    Args:
        now: The time.
        on_lapse: Called after one that was longer than LAPSE_SECONDS.
    """

    def __init__(self, now: float, on_lapse: Callable[[], None]) -> None:
        self._on_lapse = on_lapse
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
        """The process runs."""
        still, self._beat = now - self._beat, now
        if still > STILL_SECONDS:
            log.warning("the edge stood still", extra={"seconds": round(still, 1)})
            self._ended, self._seconds = now, still
            if still >= LAPSE_SECONDS:
                self._on_lapse()

    def waited(self, now: float) -> float:
        """Return for how many seconds that may have waited which seems to have come just now."""
        return self._seconds if now - self._ended <= _REMEMBERED else 0.0
