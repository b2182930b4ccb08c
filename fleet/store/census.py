"""How much there is of what an owner of shards has to do with."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fleet.store.connect import Store


@dataclass(frozen=True, slots=True)
class Count:
    """Of some shards: connected devices, pending calls, and when the oldest unread letter was written (Unix ms)."""

    devices: int = 0
    pending: int = 0
    oldest: int | None = None


class Census:
    """Counts without looking at any device."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, after: Mapping[int, str]) -> Count:
        """Count in the given shards, in one round trip.

        Args:
            after: For each shard the id of the last letter that was read.
        """
        if not after:
            return Count()
        keys, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        for shard, last in after.items():
            pipe.zcard(keys.online(shard))
            pipe.zcard(keys.deadlines(shard))
            pipe.xrange(keys.mailbox(shard), min=f"({last}", count=1)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        letters = [int(letter[0].partition("-")[0]) for entries in found[2::3] for letter in entries]
        return Count(sum(found[0::3]), sum(found[1::3]), min(letters, default=None))
