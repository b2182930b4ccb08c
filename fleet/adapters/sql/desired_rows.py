"""Desired states of a tenant's devices, as people read and change them; the leader acts on them (`desired_rounds`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Row, delete, insert, select, update
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
        device = select(DEVICE.c.mac).where(DEVICE.c.mac == mac_number(mac), DEVICE.c.tenant == self._tenant)
        async with self._sql.writing() as connection:
            # The device's row is locked, too: there may be no row of the state yet.
            if (await connection.execute(device.with_for_update())).first() is None:
                return None
            row = (
                await connection.execute(select(DESIRED_STATE).where(*self._own(mac)).with_for_update())
            ).one_or_none()
            before = DesiredState(mac) if row is None else _state_of(row)
            if version is not None and before.version != version:
                raise VersionConflict(f"the desired state has version {before.version}")
            after = patched(before.properties, patch, policies, before.version + 1, now)
            if sum(name.startswith(TOOLS) for name in after) > MOST_TOOLS:
                raise TooManyProperties(f"a desired state has at most {MOST_TOOLS} calls of tools")
            await self._write(connection, mac, row, after, now)
            changed = DesiredState(mac, before.version + 1, after, before.reported, before.reported_at)
        return before, changed

    async def drifting(self, after: int, limit: int) -> list[DesiredState]:
        """Return devices that report another value than they should, in the order of MACs behind a number."""
        c = DESIRED_STATE.c
        found = select(DESIRED_STATE).where(c.tenant == self._tenant, c.drift, c.mac > after)
        async with self._sql.reading() as connection:
            return [_state_of(row) for row in await connection.execute(found.order_by(c.mac).limit(limit))]

    async def _write(
        self, connection: AsyncConnection, mac: str, row: Row[Any] | None, after: Properties, now: int
    ) -> None:
        drift = any(one.state == "drift" for one in after.values())
        values: dict[str, Any] = {"properties": stored(after), "drift": drift}
        if row is None:
            values |= {"reported": {}, "reported_at": 0, "round": 0, "since": 0, "calls": [], "due": now, "version": 1}
            await connection.execute(insert(DESIRED_STATE).values(mac=mac_number(mac), tenant=self._tenant, **values))
            return
        # A round under way keeps its time; its end finds what is to be done.
        due = {} if row.since else {"due": now}
        await connection.execute(
            update(DESIRED_STATE).where(*self._own(mac)).values(**values, **due, version=DESIRED_STATE.c.version + 1)
        )

    def _own(self, mac: str) -> tuple[Any, ...]:
        return DESIRED_STATE.c.mac == mac_number(mac), DESIRED_STATE.c.tenant == self._tenant


async def leave_desired(connection: AsyncConnection, mac: int) -> None:
    """Forget what a tenant desired of a device that leaves it, in a transaction."""
    await connection.execute(delete(DESIRED_STATE).where(DESIRED_STATE.c.mac == mac))


def _state_of(row: Row[Any]) -> DesiredState:
    return DesiredState(mac_text(row.mac), row.version, properties_of(row.properties), row.reported, row.reported_at)
