"""Whose devices are: a copy of what the registry says, by which tenants share places.

A move writes it at once. Of a device that control has not copied since it came it is not known.
"""

from collections.abc import Awaitable, Mapping
from typing import Final, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import by_shard

SITE: Final = 1
"""The registry's number of the tenant of the site."""


class DeviceTenants:
    """Reads and writes the tenants of devices. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, tenants: Mapping[str, int]) -> None:
        """Note the tenants of some devices, by MAC, 0 for that of the site; of a device without a record nothing."""
        keys = self._store.keys
        for macs in by_shard(keys.shards, tenants, str).values():
            names = [tenants[mac] for mac in macs]
            await self._store.call("fleet_tenants_put", [keys.device(mac) for mac in macs], names)

    async def is_foreign(self, mac: str, tenant: int) -> bool:
        """Return whether a device is surely one of another tenant than of this one, as the registry numbers them."""
        asked = self._store.client.hget(self._store.keys.device(mac), "ten")
        known = await self._store.ask(cast("Awaitable[str | None]", asked))
        return known is not None and int(known) != (0 if tenant == SITE else tenant)
