"""The leases of shards."""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.owner import Owner


@dataclass(frozen=True, slots=True)
class LivingWorker:
    """A live worker: how many shards it announced, and how many seconds ago."""

    worker: str
    shards: int
    age: float


class Leases:
    """One worker's view of the leases.

    Args:
        store: Where they are kept.
        worker: This worker's id, different from every other process's.
        seconds: A lease ends this long after its last renewal.
    """

    def __init__(self, store: Store, worker: str, seconds: float) -> None:
        self._store = store
        self.worker = worker
        self.seconds = seconds
        self._ttl = int(seconds * 1000)

    async def take(self, shard: int, lost: str = "") -> Owner | None:
        """Take or keep the lease of a shard; None if another worker has it.

        Args:
            shard: The shard.
            lost: The fence of an owner that lost its connection to the broker: this worker takes over its lease.
        """
        names = self._store.keys
        held, fence = await self._store.call(
            "fleet_lease", [names.own(shard), names.fence(shard)], [self.worker, self._ttl, lost]
        )
        return Owner(self.worker, fence) if held == "1" else None

    async def renew(self, shard: int, owner: Owner) -> bool:
        """Renew a lease; False when it ended or passed to another worker."""
        (kept,) = await self._store.call(
            "fleet_renew", [self._store.keys.own(shard)], [owner.worker, owner.fence, self._ttl]
        )
        return kept == "1"

    async def release(self, shard: int) -> None:
        await self._store.call("fleet_release", [self._store.keys.own(shard)], [self.worker])

    async def free(self, shards: Iterable[int]) -> list[int]:
        """Return those of the shards that have no owner."""
        wanted = list(shards)
        pipe = self._store.client.pipeline(transaction=False)
        for shard in wanted:
            pipe.exists(self._store.keys.own(shard))
        owned = await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
        return [shard for shard, held in zip(wanted, owned, strict=True) if not held]

    async def announce(self, shards: int = 0) -> list[LivingWorker]:
        """Announce this worker and its number of shards; return all live workers, itself included."""
        ttl = max(self._ttl, 1000)
        parts = await self._store.call("fleet_announce", [keys.WORKERS, keys.LOADS], [self.worker, ttl, shards])
        rows = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        return [LivingWorker(worker, int(load), int(age) / 1000) for worker, load, age in rows]

    async def retire(self) -> None:
        """Announce that this worker stops, so that the others take over its shards at once."""
        await self._store.call("fleet_retire", [keys.WORKERS, keys.LOADS], [self.worker])
