"""Announce in Redis that an edge runs, its public address, and its load."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, keep_running

PAUSE_SECONDS = 1.0


class Announcer:
    """Renews an edge's announcement, and deletes it at the end.

    Args:
        edges: The announcements in Redis.
        describe: Returns the current announcement.
    """

    def __init__(self, edges: Edges, describe: Callable[[], EdgeRecord]) -> None:
        self._edges = edges
        self._describe = describe
        self._now = asyncio.Event()
        self.announced = asyncio.Event()

    async def run(self) -> None:
        backoff = Backoff(limit=PAUSE_SECONDS)
        try:
            await keep_running("edge announcement", lambda: self._repeat(backoff), backoff)
        finally:
            await self._retire()

    def announce_now(self) -> None:
        """Announce the current state at once."""
        self._now.set()

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            self._now.clear()
            await self._edges.announce(self._describe())
            self.announced.set()
            backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._now.wait()

    async def _retire(self) -> None:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._edges.retire(self._describe().id)
        except (Unavailable, TimeoutError):
            return  # the key expires
