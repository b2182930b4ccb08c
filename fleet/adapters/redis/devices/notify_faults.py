"""Devices that should fetch notifications but do not: after two of them a device is sent no more."""

from collections.abc import Awaitable
from typing import Final, cast

from fleet.adapters.redis.client.store import Store

MOST: Final = 2
"""Notifications without a request of the idle device, after which it is sent none."""
_FIELD: Final = "nofetch"


class NotifyFaults:
    """Counts in the device's record, for its present firmware. All methods raise `Unavailable`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def count(self, mac: str, firmware: str) -> int:
        """Return how many it has not fetched; with `MOST` it is sent none."""
        asked = self._store.client.hget(self._store.keys.device(mac), _FIELD)
        known = await self._store.ask(cast("Awaitable[str | None]", asked))
        return read_faults(known or "", firmware)

    async def add(self, mac: str, firmware: str) -> bool:
        """Count one more; return whether it was the one that was too many."""
        count = await self.count(mac, firmware) + 1
        key = self._store.keys.device(mac)
        await self._store.ask(self._store.client.hset(key, _FIELD, f"{count} {firmware}"))
        return count == MOST

    async def forget(self, mac: str) -> None:
        """Take back what was counted: the device has fetched one."""
        await self._store.ask(self._store.client.hdel(self._store.keys.device(mac), _FIELD))


def read_faults(text: str, firmware: str) -> int:
    """Return the number in the field of a device's record; what other firmware did does not count."""
    count, _, known = text.partition(" ")
    return int(count) if known == firmware and count.isdecimal() else 0
