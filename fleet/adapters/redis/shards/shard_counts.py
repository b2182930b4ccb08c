"""Counts the devices, pending calls and unread stream entries of shards, for the metrics of their owner."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Connected devices and pending calls of some shards together, and each shard's oldest unread entry by its id."""

    devices: int = 0
    pending: int = 0
    unread: Mapping[int, str] = field(default_factory=dict)


class ShardCounter:
    """Counts with the shards' indexes, so that the cost does not grow with the number of devices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, after: Mapping[int, str]) -> ShardCounts:
        """Count in the given shards, in one round trip.

        Args:
            after: For each shard the id of the last entry that was read.
        """
        if not after:
            return ShardCounts()
        keys, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        for shard, last in after.items():
            pipe.zcard(keys.online(shard))
            pipe.zcard(keys.deadlines(shard))
            pipe.xrange(keys.inbox(shard), min=f"({last}", count=1)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        unread = {shard: entries[0][0] for shard, entries in zip(after, found[2::3], strict=True) if entries}
        return ShardCounts(sum(found[0::3]), sum(found[1::3]), unread)


def entry_order(entry: str) -> tuple[int, int]:
    """Return the time (Unix ms) and the number in an entry's id; entries are ordered by them."""
    time, _, number = entry.partition("-")
    return int(time), int(number or 0)
