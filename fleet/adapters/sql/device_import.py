"""Registers and changes many devices at once, as a file names them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG
from fleet.adapters.sql.transaction import Sql
from fleet.wire.control.device_file import DeviceLine
from fleet.wire.control.device_texts import MOST_TAGS

_Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: MACs that are new, changed, of another tenant, and that would have too many tags.

    `before` and `after` have what differs of the changed ones, by MAC.
    """

    added: Sequence[str]
    changed: Sequence[str]
    foreign: Sequence[str]
    overfull: Sequence[str]
    before: Mapping[str, _Values]
    after: Mapping[str, _Values]


class DeviceImport:
    """Writes devices of one tenant.

    Args:
        sql: The database, or a transaction.
        tenant: Whose devices.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def write(self, devices: Sequence[DeviceLine], *, dry_run: bool = False) -> Imported:
        """Register the devices that are new, and change the others; a repetition changes nothing.

        Args:
            devices: At most `device_rows.AT_ONCE`, each MAC once.
            dry_run: Whether only to return what it would do.

        Raises:
            Unavailable: The database does not answer.
        """
        named = {mac_number(one.mac): one for one in devices}
        async with self._sql.reading() if dry_run else self._sql.writing() as connection:
            found = select(DEVICE).where(DEVICE.c.mac.in_(named)).order_by(DEVICE.c.mac)
            found = found if dry_run else found.with_for_update()
            rows = {row.mac: row for row in await connection.execute(found)}
            foreign = [mac for mac, row in rows.items() if row.tenant != self._tenant]
            tags = await self._tags(connection, rows)
            overfull = [mac for mac, one in named.items() if len({*tags.get(mac, {}), *one.tags}) > MOST_TAGS]
            left_out = {*foreign, *overfull}
            fresh = [mac for mac in named if mac not in rows and mac not in left_out]
            changed = [
                mac
                for mac, row in rows.items()
                if mac not in left_out and _differences(row, tags.get(mac, {}), named[mac])[1]
            ]
            if not dry_run:
                await self._insert(connection, {mac: named[mac] for mac in fresh})
                await self._update(connection, {mac: (rows[mac], named[mac]) for mac in changed})
                await self._write_tags(connection, {mac: named[mac].tags for mac in (*fresh, *changed)})
        new, other, theirs, full = (list(map(mac_text, macs)) for macs in (fresh, changed, foreign, overfull))
        differences = {mac_text(mac): _differences(rows[mac], tags.get(mac, {}), named[mac]) for mac in changed}
        before, after = ({mac: both[at] for mac, both in differences.items()} for at in (0, 1))
        return Imported(new, other, theirs, full, before, after)

    async def _tags(self, connection: AsyncConnection, rows: Mapping[int, Row[Any]]) -> dict[int, dict[str, str]]:
        found = select(DEVICE_TAG.c.mac, DEVICE_TAG.c.key, DEVICE_TAG.c.value).where(DEVICE_TAG.c.mac.in_(list(rows)))
        tags: dict[int, dict[str, str]] = {}
        for mac, key, value in await connection.execute(found):
            tags.setdefault(mac, {})[key] = value
        return tags

    async def _insert(self, connection: AsyncConnection, fresh: Mapping[int, DeviceLine]) -> None:
        if fresh:
            empty: _Values = {"name": "", "notes": "", "serial": "", "attributes": {}}
            values = [{**empty, **one.columns, "mac": mac, "tenant": self._tenant} for mac, one in fresh.items()]
            await connection.execute(insert(DEVICE), [{**row, "search": _search(row)} for row in values])

    async def _update(self, connection: AsyncConnection, changed: Mapping[int, tuple[Row[Any], DeviceLine]]) -> None:
        if not changed:
            return
        names = ("name", "notes", "serial", "attributes")
        values = [
            {"of": mac, **(row := {"mac": mac, **{name: getattr(old, name) for name in names}, **one.columns})}
            | {"search": _search(row)}
            for mac, (old, one) in changed.items()
        ]
        columns: _Values = {name: bindparam(name) for name in (*names, "search")}
        statement = update(DEVICE).where(DEVICE.c.mac == bindparam("of"))
        await connection.execute(
            statement.values(**columns, version=DEVICE.c.version + 1, stranger=False),
            [{name: one[name] for name in ("of", "search", *names)} for one in values],
        )

    async def _write_tags(self, connection: AsyncConnection, tags: Mapping[int, Mapping[str, str]]) -> None:
        named = [{"of": mac, "named": key} for mac, some in tags.items() for key in some]
        if named:
            gone = delete(DEVICE_TAG).where(DEVICE_TAG.c.mac == bindparam("of"), DEVICE_TAG.c.key == bindparam("named"))
            await connection.execute(gone, named)
        rows = [
            {"tenant": self._tenant, "key": key, "value": value, "mac": mac}
            for mac, some in tags.items()
            for key, value in some.items()
            if value
        ]
        if rows:
            await connection.execute(insert(DEVICE_TAG), rows)


def _search(row: Mapping[str, Any]) -> str:
    return search_text(row["mac"], row["name"], row["serial"], row["notes"])


def _differences(row: Row[Any], tags: Mapping[str, str], device: DeviceLine) -> tuple[_Values, _Values]:
    """Return what differs between a device and its line, before and after; a tag that is not there is empty."""
    after: _Values = {name: value for name, value in device.columns.items() if getattr(row, name) != value}
    before: _Values = {name: getattr(row, name) for name in after}
    changed = {key: value for key, value in device.tags.items() if tags.get(key, "") != value}
    if changed:
        before["tags"], after["tags"] = {key: tags.get(key, "") for key in changed}, changed
    return before, after
