"""Open descriptors of a process, before and after an attack."""

import asyncio
from pathlib import Path

LIMIT = 240


class Descriptors:
    """Remembers how many descriptors a process has.

    Args:
        pid: The process; without it this one.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._place = Path(f"/proc/{pid or 'self'}/fd")
        self._before = self.count()

    def count(self) -> int:
        return sum(1 for _ in self._place.iterdir())

    async def no_more(self, spare: int = 0) -> None:
        """Wait until there are no more than before, and some that may stay."""
        async with asyncio.timeout(LIMIT):
            while self.count() > self._before + spare:
                await asyncio.sleep(0.02)
