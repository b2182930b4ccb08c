"""Whose agent a device has: given to the device itself, to one of its groups, or to the site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from fleet.adapters.sql.assignment_rules import agent_by, group_rules, own_agent
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import ASSIGNMENT, DEVICE, GROUP, TENANT
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.adapters.sql.transaction import Sql

Scope = Literal["device", "group", "site"]
WINDOW: Final = 4_000
"""Devices that one statement looks at."""


@dataclass(frozen=True, slots=True)
class AssignmentRow:
    """An agent given to a device (`ref` is its MAC as a number), a group (its id) or the site (0).

    Of several groups of a device, the one with the highest rank counts, then the oldest one.
    """

    scope: Scope
    ref: int
    agent: int
    rank: int = 0


class AssignmentRows:
    """Reads and changes the assignments of one tenant, and finds the devices that they concern.

    The column `agent` of a device is the id of the agent that Redis has for it: control writes it after Redis. So a
    difference between it and the assignments is what is still to be done.

    Args:
        sql: The database, or a transaction.
        tenant: Whose.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql = sql
        self._tenant = tenant

    async def put(self, row: AssignmentRow) -> None:
        """Give an agent, in place of the one before."""
        values = {"scope": row.scope, "ref": row.ref, "agent": row.agent, "rank": row.rank}
        async with self._sql.writing() as connection:
            await connection.execute(delete(ASSIGNMENT).where(*self._at(row.scope, row.ref)))
            await connection.execute(insert(ASSIGNMENT).values(tenant=self._tenant, **values))

    async def remove(self, scope: Scope, ref: int) -> bool:
        """Take an agent away; return whether there was one."""
        async with self._sql.writing() as connection:
            done = await connection.execute(delete(ASSIGNMENT).where(*self._at(scope, ref)))
        return cast("CursorResult[Any]", done).rowcount > 0

    async def read(self, scope: Scope, ref: int) -> AssignmentRow | None:
        async with self._sql.reading() as connection:
            row = (await connection.execute(select(ASSIGNMENT).where(*self._at(scope, ref)))).one_or_none()
        return None if row is None else AssignmentRow(row.scope, row.ref, row.agent, row.rank)

    async def page(self, after: tuple[str, int], limit: int, agent: int | None = None) -> list[AssignmentRow]:
        """Return assignments behind a scope and ref, in their order; only those of an agent if it is named."""
        scope, ref = after
        behind = or_(ASSIGNMENT.c.scope > scope, and_(ASSIGNMENT.c.scope == scope, ASSIGNMENT.c.ref > ref))
        found = select(ASSIGNMENT).where(ASSIGNMENT.c.tenant == self._tenant, behind)
        if agent is not None:
            found = found.where(ASSIGNMENT.c.agent == agent)
        async with self._sql.reading() as connection:
            rows = (await connection.execute(found.order_by(ASSIGNMENT.c.scope, ASSIGNMENT.c.ref).limit(limit))).all()
        return [AssignmentRow(row.scope, row.ref, row.agent, row.rank) for row in rows]

    async def count(self, scope: Scope) -> int:
        found = select(func.count()).select_from(ASSIGNMENT).where(*self._at(scope, 0)[:2])
        async with self._sql.reading() as connection:
            return int((await connection.execute(found)).scalar_one())

    async def has_device(self, mac: str) -> bool:
        """Return whether the tenant has a device with this MAC."""
        return await self._any(exists().where(DEVICE.c.tenant == self._tenant, DEVICE.c.mac == mac_number(mac)))

    async def has_group(self, group: int) -> bool:
        """Return whether the tenant has a group with this id."""
        return await self._any(exists().where(GROUP.c.tenant == self._tenant, GROUP.c.id == group))

    async def tidy(self) -> None:
        """Delete the assignments of groups and devices that are gone."""
        group = exists().where(GROUP.c.id == ASSIGNMENT.c.ref, GROUP.c.tenant == self._tenant)
        device = exists().where(DEVICE.c.mac == ASSIGNMENT.c.ref, DEVICE.c.tenant == self._tenant)
        mine = ASSIGNMENT.c.tenant == self._tenant
        async with self._sql.writing() as connection:
            for scope, there in (("group", group), ("device", device)):
                await connection.execute(delete(ASSIGNMENT).where(mine, ASSIGNMENT.c.scope == scope, ~there))

    async def exists(self) -> bool:
        """Return whether the tenant has any assignment, or any device still has an agent."""
        given = exists().where(ASSIGNMENT.c.tenant == self._tenant)
        left = exists().where(DEVICE.c.tenant == self._tenant, DEVICE.c.agent != "")
        return await self._any(or_(given, left))

    async def _any(self, condition: ColumnElement[bool]) -> bool:
        async with self._sql.reading() as connection:
            return bool((await connection.execute(select(condition))).scalar_one())

    async def window(
        self, after: int, macs: Sequence[str] = (), *, whole: bool = False
    ) -> tuple[Mapping[str, str], int | None]:
        """Return the agent that each device of a window should have, empty for none, if it has another one.

        Args:
            after: Only MACs above this number; -1 to begin.
            macs: Only these, if there are some; at most `WINDOW`.
            whole: Whether to return the devices that have the right one, too.

        Returns:
            The ids by MAC, and where the next window begins; None at the end.
        """
        wanted = await self._wanted()
        found = select(DEVICE.c.mac, DEVICE.c.agent, wanted.label("wanted"))
        found = found.where(DEVICE.c.tenant == self._tenant, DEVICE.c.mac > after).order_by(DEVICE.c.mac).limit(WINDOW)
        if macs:
            found = found.where(DEVICE.c.mac.in_([mac_number(mac) for mac in macs]))
        async with self._sql.reading() as connection:
            rows = (await connection.execute(found)).all()
        different = {mac_text(row.mac): row.wanted for row in rows if whole or row.wanted != row.agent}
        return different, rows[-1].mac if len(rows) == WINDOW else None

    async def note(self, given: Mapping[str, str]) -> None:
        """Note that Redis has these agents for devices."""
        by_agent: dict[str, list[int]] = {}
        for mac, agent in given.items():
            by_agent.setdefault(agent, []).append(mac_number(mac))
        for agent, numbers in by_agent.items():
            for at in range(0, len(numbers), 500):
                changed = update(DEVICE).where(
                    DEVICE.c.tenant == self._tenant, DEVICE.c.mac.in_(numbers[at : at + 500])
                )
                async with self._sql.writing() as connection:
                    await connection.execute(changed.values(agent=agent))

    async def _wanted(self) -> ColumnElement[str]:
        """Return the expression of the agent that a device should have."""
        site = await self.read("site", 0) if self._tenant != FIRST_TENANT else None
        rules = await group_rules(self._sql, self._tenant)
        return agent_by(own_agent(self._tenant), rules, str(site.agent) if site else "")

    def _at(self, scope: Scope, ref: int) -> tuple[ColumnElement[bool], ...]:
        mine = (ASSIGNMENT.c.tenant == self._tenant, ASSIGNMENT.c.scope == scope)
        return (*mine, ASSIGNMENT.c.ref == ref)


async def tenants(sql: Sql) -> list[int]:
    """Return the ids of all tenants."""
    async with sql.reading() as connection:
        return list((await connection.execute(select(TENANT.c.id).order_by(TENANT.c.id))).scalars())
