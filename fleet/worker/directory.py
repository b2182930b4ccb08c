"""The edges that a new session can be given to."""

import asyncio
from dataclasses import replace

from fleet.store.edges import EdgeRecord, Edges
from fleet.tasks import Backoff, keep_running

REFRESH_SECONDS = 1.0


class EdgeDirectory:
    """Keeps the list of live edges fresh, so that answering a hello costs no look-up."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._live: dict[str, EdgeRecord] = {}

    async def run(self) -> None:
        backoff = Backoff(limit=REFRESH_SECONDS)
        await keep_running("edge directory", lambda: self._follow(backoff), backoff)

    async def refresh(self) -> None:
        self._live = {edge.id: edge for edge in await self._edges.live()}

    def pick(self) -> EdgeRecord | None:
        """Return the least loaded edge that is not draining, and count a session on it."""
        ready = [edge for edge in self._live.values() if not edge.draining]
        if not ready:
            return None
        edge = min(ready, key=lambda edge: edge.load)
        self._live[edge.id] = replace(edge, load=edge.load + 1)
        return edge

    async def _follow(self, backoff: Backoff) -> None:
        while True:
            await self.refresh()
            backoff.reset()
            await asyncio.sleep(REFRESH_SECONDS)
