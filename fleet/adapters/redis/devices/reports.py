"""What devices reported of their own accord, for a while."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.reports import MOST, SECONDS


class Reports:
    """Keeps reports; a turn reads them with everything else that it needs, see `Conversations.context`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, owner: Owner, mac: str, text: str) -> None:
        """Keep a report of one line; the oldest gives way.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_report",
            [keys.own(keys.shard(mac)), keys.reports(mac)],
            [owner.worker, owner.fence, SECONDS, MOST, text],
        )
