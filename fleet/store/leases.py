"""Which worker owns which shard."""

from fleet.store import keys
from fleet.store.connect import Store
from fleet.store.owner import Owner


class Leases:
    """One worker's view of the leases.

    Args:
        store: Where they are kept.
        worker: This worker's id, different from every other process's.
        seconds: A lease ends this long after its last renewal.
    """

    def __init__(self, store: Store, worker: str, seconds: float) -> None:
        self._store = store
        self._worker = worker
        self._ttl = int(seconds * 1000)

    async def take(self, shard: int) -> Owner | None:
        """Take or renew the lease of a shard; None when it is another worker's."""
        names = self._store.keys
        held, fence = await self._store.call(
            "fleet_lease", [names.own(shard), names.fence(shard)], [self._worker, self._ttl]
        )
        return Owner(self._worker, fence) if held == "1" else None

    async def release(self, shard: int) -> None:
        await self._store.call("fleet_release", [self._store.keys.own(shard)], [self._worker])

    async def announce(self) -> int:
        """Say that this worker lives; return how many do, itself included."""
        seconds = max(self._ttl // 1000, 1)
        (count,) = await self._store.call("fleet_announce", [keys.WORKERS], [self._worker, seconds])
        return int(count)

    async def retire(self) -> None:
        """Say that this worker is leaving, so that the others take its share at once."""
        await self._store.ask(self._store.client.zrem(keys.WORKERS, self._worker))
