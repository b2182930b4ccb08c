"""The streams of events that the shards keep for control (docs/adr/0042-events.md).

A stream exists while control wants events. The functions that change state write into it, in the same step.
"""

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis.client.store import Store

WANTED_SECONDS = 24 * 3600
"""How long events are kept and written for a control that does not come back."""
BEGUN = "events.begun"
"""Kind of the first entry of every stream: who reads it counts from there."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An event as a function wrote it: its place in the shard's stream, its kind, its device and its data as JSON."""

    shard: int
    id: str
    kind: str
    mac: str
    data: str

    @property
    def at(self) -> int:
        """When it happened, in Unix milliseconds."""
        return int(self.id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """How many entries a stream ever got, and how many wait."""

    added: int
    waiting: int


class Outbox:
    """Reads the streams of all shards; one process at a time does so."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def want(self, newest: Mapping[int, str]) -> None:
        """Want events for `WANTED_SECONDS` more.

        Args:
            newest: By shard the id of the last entry that was read, `0-0` for none. The ids of a new stream are above.

        Raises:
            Unavailable: Redis is away.
        """
        for shard, last in newest.items():
            key = self._store.keys.events(shard)
            await self._store.call("fleet_events_wanted", [key], [WANTED_SECONDS, last])

    async def read(self, after: Mapping[int, str], most: int, seconds: float) -> list[OutboxEntry]:
        """Return new entries in the order of each shard; wait for them up to `seconds`.

        Args:
            after: By shard the id of the last entry that was read.
            most: Entries of one shard.
            seconds: At most `BLOCK_SECONDS`.

        Raises:
            Unavailable: Redis is away.
        """
        names = {self._store.keys.events(shard): shard for shard in after}
        places = {name: after[shard] for name, shard in names.items()}
        streams = await self._store.ask(self._store.reader.read_streams(places, most, seconds))
        return [
            OutboxEntry(names[name], entry, fields.get("k", ""), fields.get("m", ""), fields.get("d", "{}"))
            for name, entries in streams
            for entry, fields in entries
        ]

    async def trim(self, read: Mapping[int, str]) -> dict[int, OutboxCounts]:
        """Remove entries whose effect is stored; return what is left of their streams.

        Args:
            read: By shard the id of the last of them.

        Raises:
            Unavailable: Redis is away.
        """
        keys = self._store.keys
        each = [([keys.events(shard)], [last]) for shard, last in read.items()]
        counts = await self._store.call_each("fleet_events_read", each)
        return {shard: OutboxCounts(int(added), int(left)) for shard, (added, left) in zip(read, counts, strict=True)}

    async def waiting(self, shards: Iterable[int]) -> list[int]:
        """Return how many entries wait in each stream, read ones that are not removed yet among them."""
        pipe = self._store.client.pipeline(transaction=False)
        for shard in shards:
            pipe.xlen(self._store.keys.events(shard))
        return await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
