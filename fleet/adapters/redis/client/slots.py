"""The slot map of a Cluster, and a client of each node."""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from redis.asyncio import ConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import Connection
from redis.crc import key_slot
from redis.exceptions import ClusterDownError

from fleet.adapters.redis.client.client import connection_options, execute
from fleet.adapters.redis.client.retries import FAULTS
from fleet.adapters.redis.client.url import RedisAddress

REFRESH_SECONDS = 0.1
"""Shortest time between two readings of the map, however many commands fail."""

_MAP_SECONDS = 0.5

Place = tuple[str, int]


class SlotMap:
    """The primary of each key, according to the nodes; read when it is first needed.

    Args:
        address: Some of the nodes.
        connections: Most connections to one node.
    """

    def __init__(self, address: RedisAddress, connections: int) -> None:
        self._address = address
        self._options = {**connection_options(address), "max_connections": connections, **address.tls_options}
        self._nodes: dict[Place, Redis] = {}
        self._starts: list[int] = []
        self._owners: list[Place] = []
        """The first slot of each range of the map, and its primary."""
        self._moved: dict[int, Place] = {}
        """Slots that moved since the map was read."""
        self._reading = asyncio.Lock()
        self._read_at = 0.0

    async def ready(self) -> None:
        """Return when there is a map.

        Raises:
            RedisError, OSError, TimeoutError: No node knows one.
        """
        if not self._starts:
            await self.refresh(ConnectionError())

    async def refresh(self, fault: BaseException) -> None:
        """Read the map anew, once for all commands that fail at a time."""
        clock = asyncio.get_running_loop().time
        async with self._reading:
            if not self._starts or clock() - self._read_at > REFRESH_SECONDS:
                await self._read()
                self._read_at = clock()

    def primaries(self) -> Sequence[Redis]:
        return [self.node(place) for place in dict.fromkeys(self._owners)]

    def owner(self, key: str) -> Place:
        """Return the primary of a key; ("", 0) before the map was read."""
        if not self._starts:
            return "", 0
        slot = key_slot(key.encode())
        return self._moved.get(slot) or self._owners[bisect_right(self._starts, slot) - 1]

    def move(self, slot: int, place: Place) -> None:
        """Record the new primary of a slot."""
        self._moved[slot] = place

    def node(self, place: Place) -> Redis:
        """Return the client of a node; it connects when it is used."""
        node = self._nodes.get(place)
        if node is None:
            kind = SSLConnection if self._address.tls else Connection
            pool = ConnectionPool(connection_class=kind, host=place[0], port=place[1], **self._options)
            node = self._nodes[place] = Redis.from_pool(pool)
        return node

    async def aclose(self) -> None:
        nodes = list(self._nodes.values())
        self._nodes.clear()
        for node in nodes:
            await node.aclose()

    async def _read(self) -> None:
        """Ask nodes for the map, in random order, until one answers."""
        places = list({*self._nodes, *self._address.hosts})
        random.shuffle(places)
        last: BaseException = ClusterDownError("no node knows the slots")
        for place in places:
            try:
                async with asyncio.timeout(_MAP_SECONDS):
                    ranges = await execute(self.node(place), "CLUSTER SLOTS")
            except FAULTS as error:
                last = error
                continue
            if ranges and ranges[0][0] == 0:
                await self._learn(sorted(ranges), place[0])
                return
        raise last

    async def _learn(self, ranges: Sequence[Any], asked: str) -> None:
        self._starts = [int(first) for first, *_ in ranges]
        self._owners = [(primary[0] or asked, int(primary[1])) for _, _, primary, *_ in ranges]
        self._moved.clear()
        members = {(host or asked, int(port)) for _, _, *nodes in ranges for host, port, *_ in nodes}
        for place in self._nodes.keys() - members - set(self._address.hosts):
            await self._nodes.pop(place).aclose()
