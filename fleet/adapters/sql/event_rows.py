"""Stores the events that the shards kept, with everything that follows from them, in one transaction.

One process at a time stores events, under a lease. Its fence and the next event's id are in one row, which every
transaction changes first: so ids appear in their order, and a process whose lease has passed on stores nothing more.
The places up to which the shards were read change with it. So a process that is killed at any moment leaves either all
effects of a batch, or none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec
from sqlalchemy import CursorResult, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.agent_names import read_names
from fleet.adapters.sql.conversation_writes import TurnWrites
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.history_schema import COLLECTOR, EVENT, EVENT_POSITION
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.redactions import redacted_texts
from fleet.adapters.sql.schema import DEVICE, TENANT
from fleet.adapters.sql.upserts import insert_or_replace
from fleet.adapters.sql.usage_rows import add_usage
from fleet.core.usage import day_of, usage_of
from fleet.ground.errors import Fenced

LOST = "events.lost"
"""Kind of the event that tells every tenant of a gap."""
_DECODER = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event of a shard: its place in the stream, its time in ms since 1970, and its data as JSON."""

    shard: int
    place: str
    at: int
    kind: str
    mac: str
    data: str


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its id and its tenant; without a device the MAC is 0."""

    id: int
    tenant: int
    at: int
    kind: str
    mac: int
    data: str


@dataclass(frozen=True, slots=True)
class Position:
    """How far a shard's stream was read: the id of the last entry, and how many entries were read or dropped."""

    last: str = "0-0"
    entries: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Events of a shard that are missing; their number is None if it is unknown."""

    shard: int
    count: int | None


class EventRows:
    """Stores events. All methods raise `Unavailable` while the database does not answer.

    Args:
        database: Where they are stored.
        fence: Of the lease; higher than that of every earlier lease.
    """

    def __init__(self, database: Database, fence: int) -> None:
        self._database, self._fence = database, fence

    async def begin(self) -> dict[int, Position]:
        """Refuse all earlier leases from now on; return how far each shard was read.

        Raises:
            Fenced: There is a newer lease already.
        """
        newer = update(COLLECTOR).where(COLLECTOR.c.fence <= self._fence).values(fence=self._fence)
        async with self._database.writing() as connection:
            if cast("CursorResult[Any]", await connection.execute(newer)).rowcount == 0:
                raise Fenced("another process collects events")
            rows = await connection.execute(select(EVENT_POSITION))
            return {row.shard: Position(row.last, row.entries, row.dropped) for row in rows}

    async def store(
        self, events: Sequence[NewEvent], positions: Mapping[int, Position], gaps: Sequence[Gap] = (), at: int = 0
    ) -> list[StoredEvent]:
        """Store events, what follows from them, and the places up to which the shards are read now.

        Args:
            events: In the order of each shard.
            positions: Of the shards that were read.
            gaps: Told before the events.
            at: The time of the gaps.

        Returns:
            What was stored, with ids.

        Raises:
            Fenced: There is a newer lease.
        """
        async with self._database.writing() as connection:
            tenants = list((await connection.execute(select(TENANT.c.id).order_by(TENANT.c.id))).scalars())
            wanted = len(events) + len(gaps) * len(tenants)
            following = await _take_ids(connection, self._fence, wanted)
            stored = [
                StoredEvent(following + number, tenant, at, LOST, 0, _gap_data(gap))
                for number, (gap, tenant) in enumerate((gap, tenant) for gap in gaps for tenant in tenants)
            ]
            owners = await _owners(connection, {one.mac for one in events if one.mac})
            nobody, first = (tenants[0], ""), following + len(stored)
            fresh = []
            for number, one in enumerate(events, first):
                mac = mac_number(one.mac) if one.mac else 0
                fresh.append(StoredEvent(number, owners.get(mac, nobody)[0], one.at, one.kind, mac, one.data))
            fresh = await _without_redacted(connection, fresh)
            stored += fresh
            if stored:
                await connection.execute(insert(EVENT), [_row(one) for one in stored])
            await self._note(connection, fresh, owners)
            if positions:
                await connection.execute(
                    insert_or_replace(EVENT_POSITION, is_sqlite=self._database.is_sqlite),
                    [
                        {"shard": shard, "last": one.last, "entries": one.entries, "dropped": one.dropped}
                        for shard, one in positions.items()
                    ],
                )
            return stored

    async def _note(
        self, connection: AsyncConnection, events: Iterable[StoredEvent], owners: Mapping[int, tuple[int, str]]
    ) -> None:
        """Add to the usage, and write what was said."""
        usage: dict[tuple[int, int, int, str], dict[str, int]] = {}
        turns = TurnWrites(connection, is_sqlite=self._database.is_sqlite)
        for one in events:
            if one.kind.startswith("device."):
                continue
            data = _read(one.data)
            agent = str(data.get("agent") or owners.get(one.mac, (0, ""))[1])[:63]
            if added := usage_of(one.kind, data):
                sums = usage.setdefault((one.tenant, day_of(one.at), one.mac, agent), {})
                for name, amount in added.items():
                    sums[name] = sums.get(name, 0) + amount
            turns.add(one.tenant, one.mac, one.at, one.kind, agent, data)
        await add_usage(connection, usage, is_sqlite=self._database.is_sqlite)
        await turns.write()


async def add_events(
    connection: AsyncConnection, fence: int, events: Sequence[tuple[int, int, str, int, Mapping[str, Any]]]
) -> None:
    """Store events of control itself in a transaction: tenant, time in ms, kind, MAC or 0, and data of each.

    Raises:
        Fenced: There is a newer lease.
    """
    first = await _take_ids(connection, fence, len(events))
    stored = [
        StoredEvent(number, tenant, at, kind, mac, msgspec.json.encode(data).decode())
        for number, (tenant, at, kind, mac, data) in enumerate(events, first)
    ]
    await connection.execute(insert(EVENT), [_row(one) for one in stored])


async def check_lease(connection: AsyncConnection, fence: int) -> None:
    """Keep the lease of events for a transaction.

    Raises:
        Fenced: There is a newer one.
    """
    await _take_ids(connection, fence, 0)


async def _without_redacted(connection: AsyncConnection, events: list[StoredEvent]) -> list[StoredEvent]:
    """Return events without what an operator took back: an answer may be shortened after that."""
    late = [one for one in events if one.kind == "turn.shortened"]
    texts = await redacted_texts(connection, [(one.mac, one.data) for one in late])
    changed = {one.id: replace(one, data=text) for one, text in zip(late, texts, strict=True)}
    return [changed.get(one.id, one) for one in events]


async def _take_ids(connection: AsyncConnection, fence: int, count: int) -> int:
    """Return the first of so many new ids."""
    taken = (
        update(COLLECTOR)
        .where(COLLECTOR.c.fence == fence)
        .values(next=COLLECTOR.c.next + count)
        .returning(COLLECTOR.c.next)
    )
    following = (await connection.execute(taken)).scalar_one_or_none()
    if following is None:
        raise Fenced("another process collects events")
    return int(following) - count


async def _owners(connection: AsyncConnection, macs: set[str]) -> dict[int, tuple[int, str]]:
    """Return the tenant of each device, and the name of its agent."""
    if not macs:
        return {}
    numbers = [mac_number(mac) for mac in macs]
    found = select(DEVICE.c.mac, DEVICE.c.tenant, DEVICE.c.agent).where(DEVICE.c.mac.in_(numbers))
    rows = (await connection.execute(found)).all()
    names = await connection.run_sync(read_names, {(tenant, agent) for _, tenant, agent in rows})
    return {mac: (tenant, names.get((tenant, agent), "")) for mac, tenant, agent in rows}


def _row(event: StoredEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "tenant": event.tenant,
        "at": event.at,
        "kind": event.kind,
        "mac": event.mac,
        "data": event.data,
    }


def _gap_data(gap: Gap) -> str:
    return msgspec.json.encode({"shard": gap.shard, "count": gap.count}).decode()


def _read(data: str) -> dict[str, Any]:
    try:
        return _DECODER.decode(data)
    except ValueError:
        return {}


class EventLog:
    """Reads and bounds the stored events. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(self, last: int, most: int, *, tenant: int | None = None, mac: int = 0) -> list[StoredEvent]:
        """Return the oldest events above an id, of one tenant or of all, of one device or of all."""
        found = select(EVENT).where(EVENT.c.id > last)
        if tenant is not None:
            found = found.where(EVENT.c.tenant == tenant)
        if mac:
            found = found.where(EVENT.c.mac == mac)
        async with self._database.reading() as connection:
            rows = await connection.execute(found.order_by(EVENT.c.id).limit(most))
            return [StoredEvent(*row) for row in rows]

    async def newest(self, most: int, *, tenant: int, mac: int = 0) -> list[StoredEvent]:
        """Return the newest events of a tenant, of one device or of all, the oldest of them first."""
        found = select(EVENT).where(EVENT.c.tenant == tenant)
        if mac:
            found = found.where(EVENT.c.mac == mac)
        async with self._database.reading() as connection:
            rows = await connection.execute(found.order_by(EVENT.c.id.desc()).limit(most))
            return [StoredEvent(*row) for row in rows][::-1]

    async def ends(self) -> tuple[int, int]:
        """Return the ids of the oldest event that is kept and of the newest one; the oldest may be one higher."""
        async with self._database.reading() as connection:
            newest = (await connection.execute(select(COLLECTOR.c.next))).scalar_one() - 1
            oldest = (await connection.execute(select(func.min(EVENT.c.id)))).scalar_one()
        return int(newest + 1 if oldest is None else oldest), int(newest)
