"""Reads and changes single devices of a tenant, and adds many at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.agent_names import read_names
from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.job_rows import forget_executions
from fleet.adapters.sql.job_schema import JOB_EXECUTION
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import ASSIGNMENT, DEVICE, DEVICE_TAG, GROUP, GROUP_MEMBER, LISTED_TOOL, METADATA
from fleet.adapters.sql.transaction import Sql
from fleet.ground.errors import FleetError
from fleet.wire.control.device_texts import MOST_TAGS

AT_ONCE = 500
"""Devices of one transaction: with SQLite, others wait for it."""


class VersionConflict(FleetError):
    """Somebody else changed the row since it was read."""


class TooManyTags(FleetError):
    """A device would have more tags than it may."""


@dataclass(frozen=True, slots=True)
class RegisteredDevice:
    """A device as the registry knows it.

    Times are milliseconds since 1970, 0 for never. `version` rises with each change that a person makes. `agent` is the
    name of the agent that counts for it, empty if only that of the site does.
    """

    mac: str
    tenant: int
    name: str
    notes: str
    attributes: Mapping[str, Any]
    agent: str
    version: int
    state: str
    board: str
    firmware: str
    serial: str
    client: str
    language: str
    key: str
    online: bool
    first_seen: int
    last_seen: int
    last_boot: int
    tags: Mapping[str, str]


_COPIED = [one.name for one in fields(RegisteredDevice) if one.name not in ("mac", "tags", "agent")]


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """What a person changes of a device; None leaves it as it is."""

    name: str | None = None
    notes: str | None = None
    attributes: Mapping[str, Any] | None = None
    tags: Mapping[str, str] | None = None
    """All tags that it has then."""
    single_tags: Mapping[str, str | None] | None = None
    """Tags to set, or with None to remove; the others stay."""

    def tags_after(self, before: Mapping[str, str]) -> Mapping[str, str]:
        """Return the tags after the change."""
        if self.tags is not None:
            return self.tags
        changed = {**before, **(self.single_tags or {})}
        return {key: value for key, value in changed.items() if value is not None}

    def columns(self) -> dict[str, Any]:
        values = {"name": self.name, "notes": self.notes, "attributes": self.attributes}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device that somebody registers before it is seen."""

    mac: str
    name: str = ""
    notes: str = ""
    serial: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


class DeviceRows:
    """Reads and changes the devices of one tenant; those of others do not exist for it.

    Args:
        sql: The database, or a transaction.
        tenant: Whose devices.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def read(self, mac: str) -> RegisteredDevice | None:
        """Return a device; None if this tenant has no such device."""
        async with self._sql.reading() as connection:
            row = await self._row(connection, mac)
            return None if row is None else (await connection.run_sync(devices_of, [row]))[0]

    async def add(self, devices: Iterable[NewDevice]) -> list[str]:
        """Register devices, at most `AT_ONCE`; return the MACs of those that were there already, of any tenant."""
        wanted = {mac_number(one.mac): one for one in devices}
        async with self._sql.writing() as connection:
            there = set((await connection.execute(select(DEVICE.c.mac).where(DEVICE.c.mac.in_(wanted)))).scalars())
            fresh = {mac: one for mac, one in wanted.items() if mac not in there}
            if fresh:
                await connection.execute(insert(DEVICE), [self._values(mac, one) for mac, one in fresh.items()])
            for mac, one in fresh.items():
                await self._set_tags(connection, mac, one.tags)
        return [mac_text(mac) for mac in sorted(there)]

    async def change(
        self, mac: str, change: DeviceChange, *, version: int | None = None
    ) -> tuple[RegisteredDevice, RegisteredDevice] | None:
        """Change a device; return it as it was and as it is, or None if this tenant has no such device.

        Args:
            mac: Of the device.
            change: What becomes different.
            version: Change it only if it has this version.

        Raises:
            VersionConflict: It has another version.
            TooManyTags: It would have more than `MOST_TAGS`.
            Unavailable: The database does not answer.
        """
        async with self._sql.writing() as connection:
            row = await self._row(connection, mac, lock=True)
            if row is None:
                return None
            if version is not None and row.version != version:
                raise VersionConflict(f"the device has version {row.version}")
            before = (await connection.run_sync(devices_of, [row]))[0]
            values, tags = change.columns(), change.tags_after(before.tags)
            if len(tags) > MOST_TAGS:
                raise TooManyTags(f"a device has at most {MOST_TAGS} tags")
            text = search_text(row.mac, values.get("name", row.name), row.serial, values.get("notes", row.notes))
            await connection.execute(
                update(DEVICE)
                .where(DEVICE.c.mac == row.mac)
                .values(**values, search=text, version=DEVICE.c.version + 1, stranger=False)
            )
            if tags != before.tags:
                await self._set_tags(connection, row.mac, tags)
            changed = select(DEVICE).where(DEVICE.c.mac == row.mac)
            after = await connection.run_sync(devices_of, [(await connection.execute(changed)).one()])
            return before, after[0]

    async def forget(self, mac: str) -> bool:
        """Delete a device, and the rows of every table with its MAC; return whether it was one of this tenant."""
        number = mac_number(mac)
        async with self._sql.writing() as connection:
            if await self._row(connection, mac, lock=True) is None:
                return False
            for table in reversed(METADATA.sorted_tables):
                if "mac" in table.c and table is not JOB_EXECUTION:
                    await connection.execute(delete(table).where(table.c.mac == number))
            await forget_executions(connection, number)
            given = ASSIGNMENT.c.scope == "device", ASSIGNMENT.c.ref == number
            await connection.execute(delete(ASSIGNMENT).where(*given))
            return True

    async def present(self, macs: Sequence[str]) -> set[str]:
        """Return those of some MACs that are devices of this tenant; at most `AT_ONCE` MACs."""
        numbers = [mac_number(mac) for mac in macs]
        own = select(DEVICE.c.mac).where(DEVICE.c.tenant == self._tenant, DEVICE.c.mac.in_(numbers))
        async with self._sql.reading() as connection:
            return {mac_text(number) for number in (await connection.execute(own)).scalars()}

    async def keep(self, macs: Sequence[str]) -> set[str]:
        """Make some devices of this tenant no strangers any more; return those that are its devices."""
        own = DEVICE.c.tenant == self._tenant, DEVICE.c.mac.in_([mac_number(mac) for mac in macs])
        async with self._sql.writing() as connection:
            kept = await connection.execute(update(DEVICE).where(*own).values(stranger=False).returning(DEVICE.c.mac))
            return {mac_text(number) for number in kept.scalars()}

    async def tools(self, mac: str) -> list[str]:
        """Return the names of the tools that a device offers."""
        names = (
            select(LISTED_TOOL.c.tool)
            .join(DEVICE, DEVICE.c.tool_list == LISTED_TOOL.c.list)
            .where(DEVICE.c.tenant == self._tenant, DEVICE.c.mac == mac_number(mac))
        )
        async with self._sql.reading() as connection:
            return sorted((await connection.execute(names)).scalars())

    async def groups(self, mac: str) -> list[str]:
        """Return the names of the static groups that a device is in."""
        names = (
            select(GROUP.c.name)
            .join(GROUP_MEMBER, GROUP_MEMBER.c.group == GROUP.c.id)
            .where(GROUP.c.tenant == self._tenant, GROUP_MEMBER.c.mac == mac_number(mac))
            .order_by(GROUP.c.name)
        )
        async with self._sql.reading() as connection:
            return list((await connection.execute(names)).scalars())

    async def _row(self, connection: AsyncConnection, mac: str, *, lock: bool = False) -> Row[Any] | None:
        statement = select(DEVICE).where(DEVICE.c.mac == mac_number(mac), DEVICE.c.tenant == self._tenant)
        return (await connection.execute(statement.with_for_update() if lock else statement)).one_or_none()

    def _values(self, mac: int, device: NewDevice) -> dict[str, Any]:
        return {
            "mac": mac,
            "tenant": self._tenant,
            "name": device.name,
            "notes": device.notes,
            "serial": device.serial,
            "attributes": dict(device.attributes),
            "search": search_text(mac, device.name, device.serial, device.notes),
        }

    async def _set_tags(self, connection: AsyncConnection, mac: int, tags: Mapping[str, str]) -> None:
        await connection.execute(delete(DEVICE_TAG).where(DEVICE_TAG.c.mac == mac))
        if tags:
            rows = [{"tenant": self._tenant, "key": key, "value": value, "mac": mac} for key, value in tags.items()]
            await connection.execute(insert(DEVICE_TAG), rows)


def devices_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[RegisteredDevice]:
    """Return the devices of rows of `device`."""
    tags: dict[int, dict[str, str]] = {row.mac: {} for row in rows}
    if tags:
        found = select(DEVICE_TAG.c.mac, DEVICE_TAG.c.key, DEVICE_TAG.c.value).where(DEVICE_TAG.c.mac.in_(tags))
        for mac, key, value in connection.execute(found.order_by(DEVICE_TAG.c.mac, DEVICE_TAG.c.key)):
            tags[mac][key] = value
    names = read_names(connection, {(row.tenant, row.agent) for row in rows})
    return [_device(row, tags[row.mac], names.get((row.tenant, row.agent), "")) for row in rows]


def _device(row: Row[Any], tags: Mapping[str, str], agent: str) -> RegisteredDevice:
    values = {name: getattr(row, name) for name in _COPIED}
    return RegisteredDevice(mac=mac_text(row.mac), tags=tags, agent=agent, **values)
