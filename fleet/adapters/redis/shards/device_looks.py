"""What decides whether and how devices get operators' calls now, read of many devices at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class DeviceNow:
    """A device at this moment. Dialect and session are empty without one, `timezone` where it is that of the site."""

    online: bool
    dialect: str
    session: str
    timezone: str


class DeviceLooks:
    """Looks at devices; raises `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def look(self, macs: Iterable[str]) -> Mapping[str, DeviceNow]:
        """Return what is known of each device now, with one call for each shard."""
        keys = self._store.keys
        shards = names.by_shard(keys.shards, macs, str)
        found = await self._store.call_each(
            "fleet_devices_look",
            [([keys.operator_calls(shard)], [names.prefix(shard), *some]) for shard, some in shards.items()],
        )
        return {
            mac: DeviceNow(on == "1", dialect, session, zone)
            for some, known in zip(shards.values(), found, strict=True)
            for mac, on, dialect, session, zone in zip(
                some, known[::4], known[1::4], known[2::4], known[3::4], strict=True
            )
        }
