"""The lease of control: of several processes, one does the work in the background."""

from collections.abc import Awaitable
from typing import cast

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store


class ControlLease:
    """One process's view of the lease.

    Args:
        store: Where it is kept.
        process: This process's id, different from every other one's.
        seconds: The lease ends this long after its last renewal.
    """

    def __init__(self, store: Store, process: str, seconds: float) -> None:
        self._store = store
        self.process = process
        self.seconds = seconds
        self._ttl = int(seconds * 1000)

    async def take(self) -> str | None:
        """Take or keep the lease; return its fence, or None if another process has it.

        Raises:
            Unavailable: Redis is away.
        """
        names = [keys.CONTROL_OWN, keys.CONTROL_FENCE]
        held, fence = await self._store.call("fleet_lease", names, [self.process, self._ttl, ""])
        return fence if held == "1" else None

    async def renew(self, fence: str) -> bool:
        """Renew the lease; False when it ended or passed to another process.

        Raises:
            Unavailable: Redis is away.
        """
        (kept,) = await self._store.call("fleet_renew", [keys.CONTROL_OWN], [self.process, fence, self._ttl])
        return kept == "1"

    async def release(self) -> None:
        await self._store.call("fleet_release", [keys.CONTROL_OWN], [self.process])

    @staticmethod
    async def holder(store: Store) -> str | None:
        """Return the process that has the lease."""
        found = store.client.hget(keys.CONTROL_OWN, "w")
        return await store.ask(cast("Awaitable[str | None]", found))
