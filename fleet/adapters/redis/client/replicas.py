"""Whether a write has to wait for a replica."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fleet.adapters.redis.client.client import ServerClient

KNOWN_SECONDS = 10.0
"""How long a node's answer about its replicas is cached; a fault ends it earlier."""


class Replicas:
    """Caches which nodes have replicas."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client
        self._known: dict[str, tuple[bool, float, int]] = {}
        """For each node: whether it has replicas, when it was asked, and the number of faults at that time."""
        self._asking = asyncio.Lock()

    async def exist(self, key: str) -> bool:
        """Return whether the primary of the key's node has a replica that is up to date."""
        return self._recall(key) if self._fresh(key) else await self._ask(key)

    def forget(self) -> None:
        """Drop the cache; the next call asks again."""
        self._known.clear()

    async def _ask(self, key: str) -> bool:
        async with self._asking:
            if not self._fresh(key):
                faults = self.faults
                found = _online(await self._client.replication(key))
                self._known[self._client.node_name(key)] = (found, asyncio.get_running_loop().time(), faults)
            return self._recall(key)

    def _recall(self, key: str) -> bool:
        return self._known[self._client.node_name(key)][0]

    def _fresh(self, key: str) -> bool:
        if not self._known:
            return False
        known = self._known.get(self._client.node_name(key))
        if known is None:
            return False
        _, asked, faults = known
        return faults == self.faults and asyncio.get_running_loop().time() - asked < KNOWN_SECONDS

    @property
    def faults(self) -> int:
        """Number of failed attempts so far."""
        return self._client.retries.faults + self._client.batch_retries.faults


def _online(info: Mapping[str, Any]) -> bool:
    replicas = [value for name, value in info.items() if name.startswith("slave") and isinstance(value, Mapping)]
    # A replica that has just joined receives nothing until its first acknowledgement, which takes up to a second.
    return any(replica.get("state") == "online" and replica.get("offset") for replica in replicas)
