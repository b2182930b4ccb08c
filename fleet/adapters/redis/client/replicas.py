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
        async with self._asking:
            known = self.known(key)
            if known is None:
                faults = self.faults
                known = _online(await self._client.replication(key))
                self._known[self._client.node_name(key)] = (known, asyncio.get_running_loop().time(), faults)
            return known

    def known(self, key: str) -> bool | None:
        """Return what `exist` would, if it need not ask; otherwise None."""
        known = self._known.get(self._client.node_name(key)) if self._known else None
        if known is None:
            return None
        exist, asked, faults = known
        return exist if faults == self.faults and asyncio.get_running_loop().time() - asked < KNOWN_SECONDS else None

    def forget(self) -> None:
        """Drop the cache; the next call asks again."""
        self._known.clear()

    @property
    def faults(self) -> int:
        """Number of failed attempts so far."""
        return self._client.retries.faults + self._client.batch_retries.faults


def _online(info: Mapping[str, Any]) -> bool:
    replicas = [value for name, value in info.items() if name.startswith("slave") and isinstance(value, Mapping)]
    # A replica that has just joined receives nothing until its first acknowledgement, which takes up to a second.
    return any(replica.get("state") == "online" and replica.get("offset") for replica in replicas)
