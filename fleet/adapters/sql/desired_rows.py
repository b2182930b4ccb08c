"""Desired states of a tenant's devices, as people read and change them; the leader acts on them (`desired_rounds`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.desired_schema import DESIRED_STATE, properties_of, stored
from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.transaction import Sql
from fleet.core.desired_patch import patched
from fleet.core.desired_state import TOOLS, Properties
from fleet.ground.errors import FleetError
from fleet.wire.property_states import PropertyPolicy

MOST_TOOLS: Final = 16
"""Calls of boards' tools in the desired state of a device."""


class TooManyProperties(FleetError):
    """A desired state would have more calls of tools than it may."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The desired state of a device. Its version is 0 while nobody has desired anything."""

    mac: str
    version: int = 0
    properties: Properties = field(default_factory=dict)
    reported: Mapping[str, Any] = field(default_factory=dict)
    reported_at: int = 0


_UNTOUCHED: Final[Mapping[str, Any]] = {"reported": {}, "reported_at": 0, "round": 0, "since": 0, "calls": []}


@dataclass(frozen=True, slots=True)
class DesiredChange:
    """A merge patch of the document, whose values fit, and policies by the names of properties; see `patched`."""

    patch: Mapping[str, Any]
    policies: Mapping[str, PropertyPolicy | None] = field(default_factory=dict)
    origin: str = ""

    def of(self, before: DesiredState, now: int) -> DesiredState:
        """Return a desired state after the change."""
        version = before.version + 1
        properties = patched(before.properties, self.patch, self.policies, version, now, self.origin)
        return DesiredState(before.mac, version, properties, before.reported, before.reported_at)


class DesiredRows:
    """Reads and changes desired states. All methods raise `Unavailable` without the database.

    Args:
        sql: The database, or a transaction.
        tenant: Whose devices.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def read(self, mac: str) -> DesiredState:
        """Return the desired state of a device of this tenant."""
        found = select(DESIRED_STATE).where(*self._own(mac))
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return DesiredState(mac) if row is None else _state_of(row)

    async def change(
        self,
        mac: str,
        patch: Mapping[str, Any],
        policies: Mapping[str, PropertyPolicy | None],
        now: int,
        *,
        version: int | None = None,
    ) -> tuple[DesiredState, DesiredState] | None:
        """Change a desired state, and let the leader act on it; return it as it was and is.

        Args:
            mac: Of the device; the answer is None if this tenant has no such device.
            patch: A merge patch of the document, whose values fit.
            policies: By the names of properties; None makes it `once` again.
            now: In ms since 1970.
            version: Change it only if it has this version.

        Raises:
            VersionConflict: It has another version.
            TooManyProperties: It would have more than `MOST_TOOLS` calls of tools.
        """
        change = DesiredChange(patch, policies)
        async with self._sql.writing() as connection:
            known = await self._locked(connection, [mac_number(mac)])
            if not known:
                return None
            (row,) = known.values()
            before = DesiredState(mac) if row is None else _state_of(row)
            if version is not None and before.version != version:
                raise VersionConflict(f"the desired state has version {before.version}")
            after = change.of(before, now)
            if _tools(after) > MOST_TOOLS:
                raise TooManyProperties(f"a desired state has at most {MOST_TOOLS} calls of tools")
            await self._write(connection, {mac_number(mac): (row, after)}, now)
        return before, after

    async def change_many(self, macs: Sequence[int], change: "DesiredChange", now: int) -> dict[int, DesiredState]:
        """Change the desired states of some devices, at most 500; return those of this tenant's devices as they are.

        One that would have too many calls of tools is left alone, and its version stays as it was.
        """
        done: dict[int, tuple[Row[Any] | None, DesiredState]] = {}
        left: dict[int, DesiredState] = {}
        async with self._sql.writing() as connection:
            for mac, row in (await self._locked(connection, macs)).items():
                before = DesiredState(mac_text(mac)) if row is None else _state_of(row)
                after = change.of(before, now)
                if _tools(after) > MOST_TOOLS:
                    left[mac] = before
                else:
                    done[mac] = row, after
            await self._write(connection, done, now)
        return left | {mac: after for mac, (_, after) in done.items()}

    async def drifting(self, after: int, limit: int) -> list[DesiredState]:
        """Return devices that report another value than they should, in the order of MACs behind a number."""
        c = DESIRED_STATE.c
        found = select(DESIRED_STATE).where(c.tenant == self._tenant, c.drift, c.mac > after)
        async with self._sql.reading() as connection:
            return [_state_of(row) for row in await connection.execute(found.order_by(c.mac).limit(limit))]

    async def _locked(self, connection: AsyncConnection, macs: Sequence[int]) -> dict[int, Row[Any] | None]:
        """Return the rows of devices of this tenant, None where there is none yet; devices and rows stay locked."""
        own = select(DEVICE.c.mac).where(DEVICE.c.mac.in_(macs), DEVICE.c.tenant == self._tenant)
        there = (await connection.execute(own.order_by(DEVICE.c.mac).with_for_update())).scalars().all()
        found = select(DESIRED_STATE).where(DESIRED_STATE.c.mac.in_(there)).order_by(DESIRED_STATE.c.mac)
        rows = {row.mac: row for row in await connection.execute(found.with_for_update())}
        return {mac: rows.get(mac) for mac in there}

    async def _write(
        self, connection: AsyncConnection, changes: Mapping[int, tuple[Row[Any] | None, DesiredState]], now: int
    ) -> None:
        new, changed = [], []
        for mac, (row, after) in changes.items():
            drift = any(one.state == "drift" for one in after.properties.values())
            values = {"properties": stored(after.properties), "drift": drift, "version": after.version}
            # A round under way keeps its time; its end finds what is to be done.
            due = row.due if row is not None and row.since else now
            if row is None:
                new.append({"mac": mac, "tenant": self._tenant, **values, **_UNTOUCHED, "due": due})
            else:
                changed.append({"of": mac, **{f"new_{name}": value for name, value in values.items()}, "new_due": due})
        if new:
            await connection.execute(insert(DESIRED_STATE), new)
        if changed:
            names = ("properties", "drift", "version", "due")
            written = update(DESIRED_STATE).where(DESIRED_STATE.c.mac == bindparam("of"))
            await connection.execute(written.values({name: bindparam(f"new_{name}") for name in names}), changed)

    def _own(self, mac: str) -> tuple[Any, ...]:
        return DESIRED_STATE.c.mac == mac_number(mac), DESIRED_STATE.c.tenant == self._tenant


def _tools(state: DesiredState) -> int:
    return sum(name.startswith(TOOLS) for name in state.properties)


async def leave_desired(connection: AsyncConnection, mac: int) -> None:
    """Forget what a tenant desired of a device that leaves it, in a transaction."""
    await connection.execute(delete(DESIRED_STATE).where(DESIRED_STATE.c.mac == mac))


def _state_of(row: Row[Any]) -> DesiredState:
    return DesiredState(mac_text(row.mac), row.version, properties_of(row.properties), row.reported, row.reported_at)
