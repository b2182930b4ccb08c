"""Whose devices are: a copy of what the registry says, by which tenants share places."""

from collections.abc import Mapping

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import by_shard


class DeviceTenants:
    """Writes the tenants of devices. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, tenants: Mapping[str, int]) -> None:
        """Note the tenants of some devices, by MAC, 0 for that of the site; of a device without a record nothing."""
        keys = self._store.keys
        for macs in by_shard(keys.shards, tenants, str).values():
            names = [tenants[mac] or "" for mac in macs]
            await self._store.call("fleet_tenants_put", [keys.device(mac) for mac in macs], names)
