"""What became of answers on their edges: an event, in place of the edge's report."""

import msgspec

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.fleet_events import SpokenData


class SpokenAnswers:
    """Writes the events of answers that were spoken, or interrupted."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, owner: Owner, mac: str, entry: StreamEntry, spoken: SpokenData) -> None:
        """Write the event, and discard the inbox entry that reported it.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis is away.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        await self._store.call(
            "fleet_spoken",
            [keys.own(shard), keys.inbox(shard), keys.events(shard)],
            [owner.worker, owner.fence, entry.id, mac, msgspec.json.encode(spoken)],
        )
