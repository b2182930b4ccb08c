"""Recent notifications of devices."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.reports import MOST, SECONDS, DeviceReport


class Reports:
    """Writes reports; `Conversations.context` reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, owner: Owner, mac: str, text: str) -> None:
        """Store a report of one line; the oldest ones are dropped.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_report",
            [keys.own(keys.shard(mac)), keys.reports(mac)],
            [owner.worker, owner.fence, SECONDS, MOST, text],
        )


def read_report(line: str) -> DeviceReport:
    """Return a report as `fleet_turn_context` gives it: its age in ms, and its text."""
    age, _, text = line.partition(" ")
    return DeviceReport(int(age) // 1000, text)
