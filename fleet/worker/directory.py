"""The edges that a new session can be given to."""

import asyncio
from dataclasses import replace

from fleet.store.edges import EdgeRecord, Edges
from fleet.tasks import Backoff, keep_running

REFRESH_SECONDS = 1.0


class EdgeDirectory:
    """Keeps the list of live edges fresh, so that answering a hello costs no look-up.

    Args:
        edges: Where they announce themselves.
        most: Sessions that an edge is given.
    """

    def __init__(self, edges: Edges, most: int) -> None:
        self._edges = edges
        self._most = most
        self._live: dict[str, EdgeRecord] = {}
        self._looked = False

    async def run(self) -> None:
        backoff = Backoff(limit=REFRESH_SECONDS)
        await keep_running("edge directory", lambda: self._follow(backoff), backoff)

    async def refresh(self) -> None:
        self._live = {edge.id: edge for edge in await self._edges.live()}
        self._looked = True

    def gone(self, edge_id: str) -> bool:
        """Whether an edge is known to be no more; one that only just began may be, too, for a second."""
        return self._looked and edge_id not in self._live

    def pick(self) -> EdgeRecord | None:
        """Return the least loaded edge that is neither draining nor full, and count a session on it."""
        ready = [edge for edge in self._live.values() if not edge.draining and edge.load < self._most]
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
