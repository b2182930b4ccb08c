"""How much there is of what an owner of shards has to do with."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class Count:
    """Of some shards: connected devices, pending calls, and for each that has one the oldest unread entry's id."""

    devices: int = 0
    pending: int = 0
    unread: Mapping[int, str] = field(default_factory=dict)


class Census:
    """Counts without looking at any device."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, after: Mapping[int, str]) -> Count:
        """Count in the given shards, in one round trip.

        Args:
            after: For each shard the id of the last entry that was read.
        """
        if not after:
            return Count()
        keys, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        for shard, last in after.items():
            pipe.zcard(keys.online(shard))
            pipe.zcard(keys.deadlines(shard))
            pipe.xrange(keys.mailbox(shard), min=f"({last}", count=1)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        unread = {shard: entries[0][0] for shard, entries in zip(after, found[2::3], strict=True) if entries}
        return Count(sum(found[0::3]), sum(found[1::3]), unread)


def place(entry: str) -> tuple[int, int]:
    """Return when an entry was written (Unix ms), and its number within that time; ids are ordered so."""
    time, _, number = entry.partition("-")
    return int(time), int(number or 0)
