"""The edges on which new sessions can be opened."""

import asyncio
import math
from collections.abc import Iterable

from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.tasks import Backoff, keep_running

REFRESH_SECONDS = 1.0
REREAD_SECONDS = 0.1
"""Least time between two reads, however many devices ask."""
GRACE_SECONDS = 2.0
"""Time for which an edge must be missing: after a restart of Redis live edges first have to announce themselves."""
_FORGET_SECONDS = 60.0


class EdgeDirectory:
    """Keeps a fresh list of the live edges, so that a hello needs no request to Redis.

    Args:
        edges: The announcements in Redis.
        most: Most sessions of one edge.
    """

    def __init__(self, edges: Edges, most: int) -> None:
        self._edges = edges
        self._most = most
        self._live: dict[str, EdgeRecord] = {}
        self._loads: dict[str, int] = {}
        """Their sessions as announced, and those that `pick` has counted since."""
        self._seen: dict[str, float] = {}
        """By edge: when it was last in the list."""
        self._since = self._read_at = -math.inf
        """When the present series of reads began, and when the last read was; a gap between reads begins a new one."""
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        backoff = Backoff(limit=REFRESH_SECONDS)
        await keep_running("edge directory", lambda: self._repeat(backoff), backoff)

    async def refresh(self) -> None:
        self.update(await self._edges.live(), asyncio.get_running_loop().time())

    def update(self, live: Iterable[EdgeRecord], now: float) -> None:
        """Take a new list of live edges."""
        self._live = {edge.id: edge for edge in live}
        self._loads = {edge.id: edge.load for edge in self._live.values()}
        if now - self._read_at > 3 * REFRESH_SECONDS:
            self._since = now
        self._read_at = now
        self._seen = {edge: at for edge, at in self._seen.items() if now - at < _FORGET_SECONDS}
        self._seen.update(dict.fromkeys(self._live, now))

    @property
    def reliable(self) -> bool:
        """Whether the list has been read for so long that an edge which is not `present` is dead."""
        return self._read_at - self._since >= GRACE_SECONDS

    @property
    def present(self) -> list[str]:
        """The edges that are not known to be dead."""
        return [edge for edge in self._seen if not self.is_gone(edge)]

    def is_gone(self, edge_id: str) -> bool:
        """Return whether an edge is known to be dead."""
        if edge_id in self._live or not self.reliable:
            return False
        return self._read_at - self._seen.get(edge_id, -math.inf) >= GRACE_SECONDS

    def pick(self) -> EdgeRecord | None:
        """Return the least loaded edge that is neither draining nor full, and count a session on it."""
        least, found = self._most, None
        for edge in self._live.values():
            if not edge.draining and self._loads[edge.id] < least:
                least, found = self._loads[edge.id], edge
        if found is not None:
            self._loads[found.id] = least + 1
        return found

    def least_loaded(self) -> str | None:
        """Return the edge with the fewest sessions, for work that is no session; None without an edge."""
        ready = [edge.id for edge in self._live.values() if not edge.draining]
        return min(ready, key=lambda edge: self._loads[edge], default=None)

    async def choose(self) -> EdgeRecord | None:
        """Return an edge as `pick` does; if none is ready, read the list again: one may have started since.

        Devices that ask at the same time wait for the same read.

        Raises:
            Unavailable: Redis is away.
        """
        edge = self.pick()
        if edge is None:
            clock = asyncio.get_running_loop().time
            asked = clock()
            async with self._reading:
                age = clock() - self._read_at
                # Full edges stay full in a young list: a new one would not have the sessions that `pick` counted.
                if self._read_at <= asked and (age > REREAD_SECONDS or not self._is_full()):
                    await asyncio.sleep(REREAD_SECONDS - age)
                    await self.refresh()
            edge = self.pick()
        return edge

    def _is_full(self) -> bool:
        return any(not edge.draining and self._loads[edge.id] >= self._most for edge in self._live.values())

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            await self.refresh()
            backoff.reset()
            await asyncio.sleep(REFRESH_SECONDS)
