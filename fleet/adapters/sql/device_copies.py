"""Writes what Redis knows of devices into their rows, and changes of their presence into its history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, LISTED_TOOL, PRESENCE, TENANT, TOOL_LIST
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.adapters.sql.upserts import insert_if_absent
from fleet.core.device_facts import DeviceFacts
from fleet.core.query.fields import version_number

MOST_STRANGERS = 20_000
"""Devices that never connected and that nobody bound or registered; the newest ones stay."""
PAGE = 100
"""Devices of one transaction: with SQLite, others wait for it."""
_COMPARED = (
    *("state", "stranger", "board", "firmware", "serial", "client", "language", "key", "online"),
    *("presence_at", "first_seen", "last_seen", "last_boot", "tool_list"),
)
_Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a batch changed: MACs that were not in the registry before, and how many rows became different."""

    new: Sequence[str] = ()
    changed: int = 0
    tenants: Mapping[str, int] = field(default_factory=dict)
    """Of devices whose facts name another tenant; 0 for that of the site."""


class DeviceCopyRows:
    """The copied columns of all tenants' devices. All methods raise `Unavailable` while the database does not answer.

    Args:
        database: The registry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, facts: Sequence[DeviceFacts], tool_lists: Mapping[str, int]) -> Copied:
        """Copy the facts about at most `PAGE` devices; one without a row becomes a device of the first tenant.

        Args:
            facts: What is known now. Devices of which nothing is known get no row.
            tool_lists: Numbers of tool lists, by the `tool_key` of the facts.
        """
        known = {mac_number(one.mac): one for one in facts}
        async with self._database.reading() as connection:
            # Nearly always nothing is different: then nobody waits for SQLite's one writer.
            rows = await _rows(connection, known)
            if not _differences(rows, known, tool_lists):
                return Copied(tenants=_other_tenants(rows, known))
        async with self._database.writing() as connection:
            rows = await _rows(connection, known, lock=True)
            different = _differences(rows, known, tool_lists)
            changed = {mac: values for mac, values in different.items() if mac in rows}
            fresh = await self._insert(connection, {mac: one for mac, one in different.items() if mac not in rows})
            await _update(connection, changed, [mac for mac in changed if rows[mac].serial != changed[mac]["serial"]])
            tenants = dict(fresh) | {mac: rows[mac].tenant for mac in changed}
            notes = [
                {"tenant": tenant, "mac": mac, "at": at, "online": different[mac]["online"]}
                for mac, tenant in tenants.items()
                if (at := different[mac]["presence_at"]) > (rows[mac].presence_at if mac in rows else 0)
            ]
            if notes:
                await connection.execute(insert_if_absent(PRESENCE, is_sqlite=self._database.is_sqlite), notes)
        return Copied([mac_text(mac) for mac in fresh], len(fresh) + len(changed), _other_tenants(rows, known))

    async def tool_list(self, tools: Sequence[str], digest: str) -> int:
        """Return the number of a list of tool names; store the list if it is new."""
        known = select(TOOL_LIST.c.id).where(TOOL_LIST.c.digest == digest)
        async with self._database.reading() as connection:
            number: int | None = (await connection.execute(known)).scalar_one_or_none()
        if number is not None:
            return number
        async with self._database.writing() as connection:
            add = insert_if_absent(TOOL_LIST, is_sqlite=self._database.is_sqlite).values(digest=digest)
            number = (await connection.execute(add.returning(TOOL_LIST.c.id))).scalar_one_or_none()
            if number is None:
                return int((await connection.execute(known)).scalar_one())
            if tools:
                listed = [{"tool": tool[:128], "list": number} for tool in tools]
                await connection.execute(insert_if_absent(LISTED_TOOL, is_sqlite=self._database.is_sqlite), listed)
            return int(number)

    async def drop_new(self, macs: Sequence[str]) -> None:
        """Delete rows that were just inserted for devices which are forgotten by now; nobody has changed them."""
        gone = delete(DEVICE).where(DEVICE.c.mac.in_([mac_number(mac) for mac in macs]), DEVICE.c.version == 1)
        async with self._database.writing() as connection:
            await connection.execute(gone)

    async def drop_strangers(self, most: int = MOST_STRANGERS) -> int:
        """Delete the oldest strangers beyond a number, at most `PAGE`; return how many were deleted."""
        strangers = select(DEVICE.c.mac).where(DEVICE.c.stranger).order_by(DEVICE.c.last_seen.desc(), DEVICE.c.mac)
        async with self._database.writing() as connection:
            macs = list((await connection.execute(strangers.offset(most).limit(PAGE))).scalars())
            if macs:
                await connection.execute(delete(DEVICE).where(DEVICE.c.mac.in_(macs)))
        return len(macs)

    async def _insert(self, connection: AsyncConnection, fresh: Mapping[int, _Values]) -> dict[int, int]:
        """Insert rows, but none that another process inserted meanwhile; return the tenant of each."""
        if not fresh:
            return {}
        tenant = (await connection.execute(select(func.min(TENANT.c.id)))).scalar_one()
        statement = insert_if_absent(DEVICE, is_sqlite=self._database.is_sqlite).returning(DEVICE.c.mac)
        values = [
            {"mac": mac, "tenant": tenant, "search": search_text(mac, "", one["serial"], ""), **one}
            for mac, one in fresh.items()
        ]
        return dict.fromkeys((await connection.execute(statement, values)).scalars(), tenant)


async def _rows(connection: AsyncConnection, macs: Iterable[int], *, lock: bool = False) -> dict[int, Row[Any]]:
    columns = (DEVICE.c.mac, DEVICE.c.tenant, *(DEVICE.c[name] for name in _COMPARED))
    # Locks in one order: two processes that copy the same devices must not wait for each other.
    found = select(*columns).where(DEVICE.c.mac.in_(list(macs))).order_by(DEVICE.c.mac)
    return {row.mac: row for row in await connection.execute(found.with_for_update() if lock else found)}


async def _update(connection: AsyncConnection, changed: Mapping[int, _Values], searched: Sequence[int]) -> None:
    if not changed:
        return
    columns: _Values = {name: bindparam(name) for name in (*_COMPARED, "firmware_number")}
    statement = update(DEVICE).where(DEVICE.c.mac == bindparam("of")).values(columns)
    await connection.execute(statement, [{"of": mac, **values} for mac, values in changed.items()])
    if searched:
        words = select(DEVICE.c.mac, DEVICE.c.name, DEVICE.c.serial, DEVICE.c.notes).where(DEVICE.c.mac.in_(searched))
        texts = [{"of": row[0], "text": search_text(*row)} for row in await connection.execute(words)]
        found = update(DEVICE).where(DEVICE.c.mac == bindparam("of")).values(search=bindparam("text"))
        await connection.execute(found, texts)


def _other_tenants(rows: Mapping[int, Row[Any]], known: Mapping[int, DeviceFacts]) -> dict[str, int]:
    """Return the tenants of devices that are not the ones of their facts."""
    tenants = {mac: 0 if row.tenant == FIRST_TENANT else row.tenant for mac, row in rows.items()}
    return {
        mac_text(mac): tenant for mac, tenant in tenants.items() if tenant != known[mac].tenant and known[mac].known
    }


def _differences(
    rows: Mapping[int, Row[Any]], known: Mapping[int, DeviceFacts], tool_lists: Mapping[str, int]
) -> dict[int, _Values]:
    """Return the whole copied values of each device whose row has others."""
    different: dict[int, _Values] = {}
    for mac, one in known.items():
        row = rows.get(mac)
        if row is None and not one.known:
            continue
        values = _new(one) if row is None else _merged(row, one)
        values["tool_list"] = tool_lists.get(one.tool_key, None if row is None else row.tool_list)
        if row is None or any(values[name] != getattr(row, name) for name in _COMPARED):
            values["firmware_number"] = version_number(values["firmware"])
            different[mac] = values
    return different


def _new(facts: DeviceFacts) -> _Values:
    values = {name: getattr(facts, name) for name in _COMPARED if name not in ("first_seen", "tool_list")}
    seen = [at for at in (facts.presence_at, facts.last_boot) if at]
    return {**values, "state": facts.state or "registered", "first_seen": min(seen, default=0)}


def _merged(row: Row[Any], facts: DeviceFacts) -> _Values:
    """Return the values of a row after the facts: what Redis has lost or dropped stays as it was."""
    values = {
        name: getattr(facts, name) or getattr(row, name) for name in ("board", "firmware", "serial", "language", "key")
    }
    seen = [at for at in (row.first_seen, facts.presence_at, facts.last_boot) if at]
    # A code that is not shown any more means that bootstrap still refuses the device.
    state = facts.state or ("refused" if row.state == "waiting" else row.state)
    at = row.presence_at + (facts.known and facts.online != row.online)
    return {
        **values,
        "state": state,
        "client": facts.client if facts.known else row.client,
        "stranger": row.stranger and facts.stranger,
        "online": facts.online,
        "presence_at": max(at, facts.presence_at),
        "first_seen": row.first_seen or min(seen, default=0),
        "last_seen": max(row.last_seen, facts.last_seen),
        "last_boot": max(row.last_boot, facts.last_boot),
    }
