"""The edges that a new session can be given to."""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import replace

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.tasks import Backoff, keep_running

REFRESH_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.1
"""Age of a look that is too young to be repeated, however many devices ask."""
GRACE_SECONDS = 2.0
"""How long an edge must be missed: a store that comes back has forgotten edges which soon announce themselves again."""
_FORGET_SECONDS = 60.0


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
        self._seen: dict[str, float] = {}
        """When each edge was last seen to live."""
        self._since = self._looked = -math.inf
        """When the present series of looks began, and its last one; a gap between two looks ends a series."""
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        backoff = Backoff(limit=REFRESH_SECONDS)
        await keep_running("edge directory", lambda: self._follow(backoff), backoff)

    async def refresh(self) -> None:
        self.learn(await self._edges.live(), asyncio.get_running_loop().time())

    def learn(self, live: Iterable[EdgeRecord], now: float) -> None:
        """Take a new list of the live edges."""
        self._live = {edge.id: edge for edge in live}
        if now - self._looked > 3 * REFRESH_SECONDS:
            self._since = now
        self._looked = now
        self._seen = {edge: at for edge, at in self._seen.items() if now - at < _FORGET_SECONDS}
        self._seen.update(dict.fromkeys(self._live, now))

    @property
    def sure(self) -> bool:
        """Whether who lives is known for so long that an edge which is not `present` is no more."""
        return self._looked - self._since >= GRACE_SECONDS

    @property
    def present(self) -> list[str]:
        """The edges that are not gone."""
        return [edge for edge in self._seen if not self.gone(edge)]

    def gone(self, edge_id: str) -> bool:
        """Whether an edge is known to be no more."""
        if edge_id in self._live or not self.sure:
            return False
        return self._looked - self._seen.get(edge_id, -math.inf) >= GRACE_SECONDS

    def pick(self) -> EdgeRecord | None:
        """Return the least loaded edge that is neither draining nor full, and count a session on it."""
        ready = [edge for edge in self._live.values() if not edge.draining and edge.load < self._most]
        if not ready:
            return None
        edge = min(ready, key=lambda edge: edge.load)
        self._live[edge.id] = replace(edge, load=edge.load + 1)
        return edge

    async def choose(self) -> EdgeRecord | None:
        """Return an edge as `pick` does; where none seems ready, look again: one may have begun just now.

        Raises:
            Unavailable: Redis is away.
        """
        edge = self.pick()
        if edge is None:
            async with self._looking:
                if asyncio.get_running_loop().time() - self._looked > LOOK_AGAIN_SECONDS:
                    await self.refresh()
            edge = self.pick()
        return edge

    async def _follow(self, backoff: Backoff) -> None:
        while True:
            await self.refresh()
            backoff.reset()
            await asyncio.sleep(REFRESH_SECONDS)
