"""All devices that were heard of lately, and what each was last told at bootstrap."""

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from fleet.adapters.redis.access.admissions import YOUNG_SECONDS
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.wire.identity import Username

MOST_OFFERS = 3
"""A device is offered the same firmware so often within a day: whatever keeps it from installing it, it shall work."""
_OFFER_SECONDS = 24 * 3600
_MOST_OFFERED = 8
"""Client-Ids of one MAC whose offers are counted; more are offered without."""
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A device, when it last asked bootstrap, and the id of the key of the credentials that were given out then.

    Anybody may ask bootstrap in its name. `connected` is who came: the user name of its last connection, None while no
    broker said it. `given` is the generation of the password that it was given last.
    """

    device: DeviceRecord
    seen: datetime
    key: str
    connected: Username | None = None
    given: int = 0


class DeviceRegistry:
    """Lists devices, and counts what they are offered."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def count_offer(self, mac: str, client: str, version: str) -> int:
        """Count that whoever has a device's password is offered a firmware.

        Returns how often it was within a day, this time included. Under an open policy anybody may have it: each
        Client-Id is counted alone, a few of them.
        """
        names = self._store.keys
        field = f"fw:{hashlib.sha256(client.encode(errors='replace')).hexdigest()[:8]}"
        [count] = await self._store.call(
            "fleet_offer", [names.device(mac)], [field, version, _OFFER_SECONDS, _MOST_OFFERED, YOUNG_SECONDS]
        )
        return int(count)

    async def entries(self) -> list[Entry]:
        """Return all devices that bootstrapped within the last 90 days, ordered by MAC; the others are forgotten."""
        entries = [entry for shard in range(self._store.keys.shards) for entry in await self._of(shard)]
        return sorted(entries, key=lambda entry: entry.device.mac)

    async def _of(self, shard: int) -> list[Entry]:
        index, now = self._store.keys.seen(shard), datetime.now(UTC).timestamp()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zremrangebyscore(index, "-inf", now - DEVICE_SECONDS)
        pipe.zrange(index, 0, -1, withscores=True)
        _, members = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        found: list[Entry] = []
        for at in range(0, len(members), _AT_ONCE):
            found += await self._read(members[at : at + _AT_ONCE])
            await asyncio.sleep(0)
        return found

    async def _read(self, members: list[tuple[str, float]]) -> list[Entry]:
        pipe = self._store.client.pipeline(transaction=False)
        for mac, _ in members:
            pipe.hgetall(self._store.keys.device(mac))
        records = await self._store.ask(cast("Awaitable[list[dict[str, str]]]", pipe.execute()))
        return [_entry(mac, seen, record) for (mac, seen), record in zip(members, records, strict=True)]


def _entry(mac: str, seen: float, record: Mapping[str, str]) -> Entry:
    device, at = DeviceRecord.of(mac, record), datetime.fromtimestamp(seen, UTC)
    return Entry(device, at, record.get("kid", ""), device.connected, int(record.get("kg", "0")))
