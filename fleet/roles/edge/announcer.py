"""Saying that an edge lives, where devices reach it, and how busy it is."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, keep_running

PAUSE_SECONDS = 1.0


class Announcer:
    """Keeps an edge's announcement alive; takes it back at the end.

    Args:
        edges: Where edges are announced.
        describe: Says how the edge stands now.
    """

    def __init__(self, edges: Edges, describe: Callable[[], EdgeRecord]) -> None:
        self._edges = edges
        self._describe = describe
        self._hurry = asyncio.Event()
        self.announced = asyncio.Event()

    async def run(self) -> None:
        backoff = Backoff(limit=PAUSE_SECONDS)
        try:
            await keep_running("edge announcement", lambda: self._repeat(backoff), backoff)
        finally:
            await self._retire()

    def hurry(self) -> None:
        """Announce at once how the edge stands now."""
        self._hurry.set()

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            self._hurry.clear()
            await self._edges.announce(self._describe())
            self.announced.set()
            backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._hurry.wait()

    async def _retire(self) -> None:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._edges.retire(self._describe().id)
        except (Unavailable, TimeoutError):
            return  # it lapses by itself
