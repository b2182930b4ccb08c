"""Places for those who read at a time: fewer for one tenant than for all."""

import asyncio
from collections import defaultdict

from fleet.ground.errors import Unavailable


class ReadingPlaces:
    """Counts who reads.

    Args:
        all_: Places for all.
        each: Places for one tenant.
    """

    def __init__(self, all_: int, each: int) -> None:
        self._all = asyncio.Semaphore(all_)
        self._each: dict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(each))

    async def take(self, tenant: int, seconds: float) -> None:
        """Take a place.

        Args:
            tenant: Who reads.
            seconds: How long to wait for a place.

        Raises:
            Unavailable: None got free.
        """
        own = self._each[tenant]
        try:
            async with asyncio.timeout(seconds):
                await own.acquire()
                try:
                    await self._all.acquire()
                except asyncio.CancelledError:
                    own.release()
                    raise
        except TimeoutError as error:
            raise Unavailable("too much is read from the database at a time") from error

    def give(self, tenant: int) -> None:
        """Give a place back."""
        self._all.release()
        self._each[tenant].release()
