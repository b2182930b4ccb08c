"""All devices that were heard of lately, and what each was last told at bootstrap."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from fleet.store.admissions import Admission, admission_key
from fleet.store.connect import Store
from fleet.store.devices import Device
from fleet.store.keys import DEVICE_SECONDS, prefix
from fleet.wire.identity import Username, parse_username

MOST_OFFERS = 3
"""A device is offered the same firmware so often within a day: whatever keeps it from installing it, it shall work."""
_OFFER_SECONDS = 24 * 3600
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A device, when it last asked bootstrap, and the id of the key of the credentials that were given out then.

    Anybody may ask bootstrap in its name. `connected` is who came: the user name of its last connection, None while no
    broker said it.
    """

    device: Device
    seen: datetime
    key: str
    connected: Username | None = None


class Roster:
    """Notes bootstraps, and lists devices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, mac: str, fields: Mapping[str, str], dialect: str = "") -> Admission:
        """Write down a bootstrap.

        Args:
            mac: The device.
            fields: What it said of itself, and `kid`, the key of what it was given.
            dialect: How it speaks as far as bootstrap tells; kept until its messages tell more.

        Returns:
            What the operator decided about it, from the same round trip: whole sites boot at once.
        """
        keys = self._store.keys
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hgetall(admission_key(self._store, mac))
        pipe.hset(keys.device(mac), mapping=cast("Any", fields))
        if dialect:
            pipe.hsetnx(keys.device(mac), "dialect", dialect)
        pipe.expire(keys.device(mac), DEVICE_SECONDS)
        pipe.zadd(self._index(keys.shard(mac)), {mac: datetime.now(UTC).timestamp()})
        record, *_ = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return Admission.of(record)

    async def count_offer(self, mac: str, version: str) -> int:
        """Count that a device is offered a firmware; return how often it was within a day, this time included."""
        key = f"{prefix(self._store.keys.shard(mac))}fw:{mac}:{version}"
        pipe = self._store.client.pipeline(transaction=False)
        pipe.incr(key)
        pipe.expire(key, _OFFER_SECONDS, nx=True)
        count, _ = await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
        return count

    async def entries(self) -> list[Entry]:
        """Return all devices that bootstrapped within the last 90 days, ordered by MAC; the others are forgotten."""
        entries = [entry for shard in range(self._store.keys.shards) for entry in await self._of(shard)]
        return sorted(entries, key=lambda entry: entry.device.mac)

    async def _of(self, shard: int) -> list[Entry]:
        index, now = self._index(shard), datetime.now(UTC).timestamp()
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
        return [
            Entry(
                Device.of(mac, record), datetime.fromtimestamp(seen, UTC), record.get("kid", ""), connected_as(record)
            )
            for (mac, seen), record in zip(members, records, strict=True)
        ]

    def _index(self, shard: int) -> str:
        return f"{prefix(shard)}seen"


def connected_as(record: Mapping[str, str]) -> Username | None:
    """Return the user name of a device's last connection out of its record, None where the broker did not say it."""
    return parse_username(record.get("cu", "")) if record.get("cep") == record.get("ep") else None
