"""Counts of a shard owner's devices, calls and unread entries."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Of some shards: connected devices, pending calls, and the id of each shard's oldest unread entry, if any."""

    devices: int = 0
    pending: int = 0
    unread: Mapping[int, str] = field(default_factory=dict)


class ShardCounter:
    """Counts by the indexes, without reading a device."""

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
