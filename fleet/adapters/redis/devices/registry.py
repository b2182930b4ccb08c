"""All devices with a recent bootstrap, and what each one received there last."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.wire.identity import Username

_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A device, the time of its last bootstrap, and the id of the key of the credentials issued then.

    Any client may ask bootstrap with its MAC. `connected` is the user name of its last connection, None if no broker
    reported it. `given` is the generation of the last issued password.
    """

    device: DeviceRecord
    seen: datetime
    key: str
    connected: Username | None = None
    given: int = 0


class DeviceRegistry:
    """Lists devices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def entries(self) -> list[Entry]:
        """Return all devices with a bootstrap within the last 90 days, ordered by MAC; remove the others."""
        entries = [entry for shard in range(self._store.keys.shards) for entry in await self._of(shard)]
        return sorted(entries, key=lambda entry: entry.device.mac)

    async def again(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the present entries of some devices."""
        members, found = [(one.device.mac, one.seen.timestamp()) for one in entries], list[Entry]()
        for at in range(0, len(members), _AT_ONCE):
            found += await self._read(members[at : at + _AT_ONCE])
        return found

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
