"""What the registry copies of devices: read for many devices at once, and found in bounded pages."""

import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from fleet.adapters.redis.access.activations import PENDING_SECONDS
from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.keys import by_shard
from fleet.core.device_facts import DeviceFacts
from fleet.wire.control.device_texts import DeviceState
from fleet.wire.identity import parse_username

PAGE: Final = 100
"""Devices that are read at once."""
_OWNED = re.compile(r"f:\{\d+\}:o:((?:[0-9a-f]{2}:){5}[0-9a-f]{2})")
_RECORD = ("on", "ep", "tp", "board", "fw", "lang", "pg", "tep", "cu", "cep", "kid", "ten")
_ADMISSION = ("bound", "client", "serial", "how", "unbound")
_LONGEST = 64
_DECIDED = ("code", "mac", "key")
"""How a MAC got its owner by a decision, and not because it asked first."""

Refusals = Mapping[str, tuple[int, str]]
"""Why bootstrap last refused a MAC, and when (s since 1970)."""


class FactReader:
    """Reads what Redis knows of devices. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def refusals(self) -> Refusals:
        """Return the refused MACs; their number is bounded."""
        return await TraceStore(self._store).refusals()

    async def read(self, macs: Sequence[str], refusals: Refusals) -> list[DeviceFacts]:
        """Return what is known of at most `PAGE` canonical MACs, in their order."""
        if not macs:
            return []
        names, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        shards = by_shard(names.shards, macs, str)
        for mac in macs:
            pipe.hmget(names.device(mac), _RECORD)
            pipe.hmget(admission_key(self._store, mac), _ADMISSION)
        for shard, members in shards.items():
            pipe.zmscore(names.seen(shard), members)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        boots: dict[str, float | None] = {}
        for members, scores in zip(shards.values(), found[2 * len(macs) :], strict=True):
            boots.update(zip(members, scores, strict=True))
        revoked = await Revocations(self._store).which(macs)
        return [
            _facts(mac, found[2 * at], found[2 * at + 1], boots[mac], mac in revoked, refusals.get(mac))
            for at, mac in enumerate(macs)
        ]

    async def tools(self, mac: str) -> tuple[str, ...]:
        """Return the names of the tools that a device offers."""
        return tuple(sorted({tool.name for tool in await ToolLists(self._store).read(mac)}))

    async def disconnected(self, macs: Sequence[str]) -> list[str]:
        """Return those of some canonical MACs that are not connected."""
        names, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        shards = by_shard(names.shards, macs, str)
        for shard, members in shards.items():
            pipe.zmscore(names.online(shard), members)
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute())) if macs else []
        pairs = zip(shards.values(), found, strict=True)
        return [mac for members, scores in pairs for mac, at in zip(members, scores, strict=True) if at is None]

    async def booted_since(self, shard: int, at: float) -> tuple[list[str], float]:
        """Return some devices of a shard that bootstrap served later than a time (s), and the time to go on from."""
        index = self._store.keys.seen(shard)
        above = self._store.client.zrangebyscore(index, f"({at:.0f}", "+inf", start=0, num=PAGE, withscores=True)
        found = await self._store.ask(cast("Awaitable[list[tuple[str, float]]]", above))
        if len(found) < PAGE:
            return [mac for mac, _ in found], found[-1][1] if found else at
        last = found[-1][1]
        if whole := [mac for mac, score in found if score < last]:
            return whole, last - 1
        same = self._store.client.zrangebyscore(index, f"{last:.0f}", f"{last:.0f}")
        return await self._store.ask(cast("Awaitable[list[str]]", same)), last

    async def online_count(self) -> int:
        """Return how many devices are connected."""
        pipe = self._store.client.pipeline(transaction=False)
        for shard in range(self._store.keys.shards):
            pipe.zcard(self._store.keys.online(shard))
        return sum(await self._store.ask(cast("Awaitable[list[int]]", pipe.execute())))

    async def online(self) -> AsyncIterator[list[str]]:
        """Yield pages of the connected devices; a MAC may come several times."""
        for shard in range(self._store.keys.shards):
            async for page in self._members(self._store.keys.online(shard)):
                yield page

    async def all(self) -> AsyncIterator[list[str]]:
        """Yield pages of all MACs that Redis knows; a MAC may come several times."""
        for shard in range(self._store.keys.shards):
            for index in (self._store.keys.seen(shard), self._store.keys.online(shard)):
                async for page in self._members(index):
                    yield page
        async for page in Revocations(self._store).pages():
            yield page
        yield [claim.mac for claim in await Claims(self._store).all()]
        yield list(await self.refusals())
        async for names in self._store.pages("f:{*}:o:*"):
            yield [found[1] for name in names if (found := _OWNED.fullmatch(name))]

    async def _members(self, index: str) -> AsyncIterator[list[str]]:
        cursor = 0
        while True:
            scan = self._store.client.zscan(index, cursor, count=PAGE)
            cursor, page = await self._store.ask(cast("Awaitable[tuple[int, list[tuple[str, float]]]]", scan))
            yield [mac for mac, _ in page]
            if not int(cursor):
                return


def pages_of(macs: Iterable[str]) -> list[list[str]]:
    """Return MACs in pages that can be read at once, each MAC once."""
    whole = list(dict.fromkeys(macs))
    return [whole[at : at + PAGE] for at in range(0, len(whole), PAGE)]


def _facts(
    mac: str,
    record: Sequence[str | None],
    admission: Sequence[str | None],
    boot: float | None,
    revoked: bool,
    refusal: tuple[int, str] | None,
) -> DeviceFacts:
    on, epoch, changed, board, firmware, language, pages, tools, user, reported, issued, tenant = record
    named = parse_username(user or "") if reported == epoch else None
    bound, client, serial, how, unbound = admission
    refused_at, reason = refusal or (0, "")
    decided = bool(bound) and (how or "mac") in _DECIDED
    refused = "" if refused_at <= (boot or 0) else _refused(refused_at, reason)
    state: DeviceState | str = "bound" if bound else refused or ("registered" if boot or epoch or unbound else "")
    return DeviceFacts(
        mac=mac,
        state=cast("DeviceState", "revoked" if revoked else state),
        stranger=not (epoch or decided or unbound or revoked),
        board=_short(board),
        firmware=_short(firmware),
        serial=_short(serial),
        client=_short(client),
        language=_short(language)[:32],
        key=named.key_id if named else _short(issued)[:32],
        online=on == "1",
        presence_at=_presence_at(on == "1", epoch, changed),
        last_boot=round((boot or 0) * 1000),
        pages=pages or "",
        has_tools=bool(tools),
        tenant=int(tenant or 0),
    )


def _short(text: str | None) -> str:
    """Return a text as a column takes it: PostgreSQL refuses the character 0."""
    return (text or "")[:_LONGEST].replace("\0", "")


def _refused(at: int, reason: str) -> DeviceState:
    waits = reason == "not bound" and at > datetime.now(UTC).timestamp() - PENDING_SECONDS
    return "waiting" if waits else "refused"


def _presence_at(online: bool, epoch: str | None, changed: str | None) -> int:
    """Return when the presence changed.

    An epoch is the time of the connection in microseconds; where a broker counts otherwise, the trace has the time.
    """
    seconds = int(changed) if changed and changed.isdigit() else 0
    connected = int(epoch) // 1000 if online and epoch and epoch.isdigit() else 0
    return connected if connected and abs(connected - seconds * 1000) < 3_600_000 else seconds * 1000
