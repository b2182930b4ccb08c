"""Pauses in long work on the event loop."""

import asyncio
from typing import Final

_EACH: Final = 10
"""Cost of one `spend` besides its units."""


class LoopYield:
    """Lets other tasks run after a given amount of work.

    Args:
        most: Units of work between two pauses.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._done = 0

    async def spend(self, units: int) -> None:
        """Count work that was done; pause when it reaches the limit."""
        self._done += units + _EACH
        if self._done >= self._most:
            self._done = 0
            await asyncio.sleep(0)
