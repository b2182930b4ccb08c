"""Whether a call can and must wait for a replica."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fleet.adapters.redis.client.client import ServerClient

KNOWN_SECONDS = 10.0
"""How long it is believed what a node said of its replicas, unless something goes wrong."""


class Replicas:
    """Remembers which nodes have replicas, so that a call need not ask."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client
        self._known: dict[str, tuple[bool, float, int]] = {}
        """For each node: whether it has any, when that was asked, and how many faults there had been."""
        self._asking = asyncio.Lock()

    async def exist(self, key: str) -> bool:
        """Return whether the primary of the key's node has a replica that is up to date."""
        return self._recall(key) if self._fresh(key) else await self._ask(key)

    def forget(self) -> None:
        """Ask again before the next call: what was known turned out wrong."""
        self._known.clear()

    async def _ask(self, key: str) -> bool:
        async with self._asking:
            if not self._fresh(key):
                faults = self.faults
                found = _online(await self._client.replication(key))
                self._known[self._client.place(key)] = (found, asyncio.get_running_loop().time(), faults)
            return self._recall(key)

    def _recall(self, key: str) -> bool:
        return self._known[self._client.place(key)][0]

    def _fresh(self, key: str) -> bool:
        if not self._known:
            return False
        known = self._known.get(self._client.place(key))
        if known is None:
            return False
        _, asked, faults = known
        return faults == self.faults and asyncio.get_running_loop().time() - asked < KNOWN_SECONDS

    @property
    def faults(self) -> int:
        """How often something went wrong so far."""
        return self._client.patience.faults + self._client.batches.faults


def _online(info: Mapping[str, Any]) -> bool:
    replicas = [value for name, value in info.items() if name.startswith("slave") and isinstance(value, Mapping)]
    # One that has only just joined is sent nothing until it has acknowledged once, which takes up to a second.
    return any(replica.get("state") == "online" and replica.get("offset") for replica in replicas)
