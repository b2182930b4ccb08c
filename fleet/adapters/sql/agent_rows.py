"""The agents of a tenant: drafts, and the versions that were published."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.schema import AGENT, AGENT_VERSION
from fleet.adapters.sql.token_rows import NameTaken
from fleet.adapters.sql.transaction import Sql

KEPT_VERSIONS = 100
"""Published versions of an agent; older ones are deleted, but not the one that counts."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent. `live` is the number of the version that counts, 0 for none; `draft` is a JSON object."""

    id: int
    tenant: int
    name: str
    notes: str
    draft: Mapping[str, Any]
    live: int
    version: int
    created: int


@dataclass(frozen=True, slots=True)
class AgentVersionRow:
    """A published version of an agent."""

    agent: int
    number: int
    document: Mapping[str, Any]
    author: str
    created: int


class AgentRows:
    """Reads and changes the agents of one tenant.

    Args:
        sql: The database, or a transaction.
        tenant: Whose.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql = sql
        self._tenant = tenant

    async def count(self) -> int:
        found = select(func.count()).select_from(AGENT).where(AGENT.c.tenant == self._tenant)
        async with self._sql.reading() as connection:
            return int((await connection.execute(found)).scalar_one())

    async def page(self, after: int, limit: int) -> list[AgentRow]:
        """Return agents with ids above `after`, at most `limit`, in the order of their ids."""
        found = select(AGENT).where(AGENT.c.tenant == self._tenant, AGENT.c.id > after).order_by(AGENT.c.id)
        async with self._sql.reading() as connection:
            return [_agent(row) for row in (await connection.execute(found.limit(limit))).all()]

    async def read(self, agent: int) -> AgentRow | None:
        found = select(AGENT).where(AGENT.c.tenant == self._tenant, AGENT.c.id == agent)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _agent(row)

    async def add(self, name: str, notes: str, draft: Mapping[str, Any], now: int) -> AgentRow:
        """Add an agent.

        Raises:
            NameTaken: The tenant has one with this name.
        """
        values = {"tenant": self._tenant, "name": name, "notes": notes, "draft": draft, "created": now}
        values |= new_number(self._sql, AGENT)
        try:
            async with self._sql.writing() as connection:
                return _agent((await connection.execute(insert(AGENT).values(values).returning(AGENT))).one())
        except IntegrityError as error:
            raise NameTaken(f"there is an agent {name} already") from error

    async def change(self, agent: int, expected: int | None, **fields: Any) -> AgentRow | None:
        """Change fields of an agent; return it, or None if there is none.

        Raises:
            VersionConflict: It has another version than the expected one.
            NameTaken: The tenant has another agent with the new name.
        """
        if await self.read(agent) is None:
            return None
        where = [AGENT.c.tenant == self._tenant, AGENT.c.id == agent]
        where += [] if expected is None else [AGENT.c.version == expected]
        changed = update(AGENT).where(*where).values(**fields, version=AGENT.c.version + 1).returning(AGENT)
        try:
            async with self._sql.writing() as connection:
                row = (await connection.execute(changed)).one_or_none()
        except IntegrityError as error:
            raise NameTaken("there is an agent with this name already") from error
        if row is None:
            raise VersionConflict("somebody else changed the agent")
        return _agent(row)

    async def remove(self, agent: int, expected: int | None = None) -> bool:
        """Delete an agent with its versions and assignments; return whether it was there.

        Raises:
            VersionConflict: It has another version than the expected one.
        """
        where = [AGENT.c.tenant == self._tenant, AGENT.c.id == agent]
        where += [] if expected is None else [AGENT.c.version == expected]
        async with self._sql.writing() as connection:
            gone = cast("CursorResult[Any]", await connection.execute(delete(AGENT).where(*where))).rowcount > 0
        if not gone and await self.read(agent) is not None:
            raise VersionConflict("somebody else changed the agent")
        return gone

    async def add_version(self, agent: AgentRow, author: str, now: int) -> AgentVersionRow:
        """Keep the draft of an agent as its next version; delete the oldest ones of too many."""
        newest = select(func.max(AGENT_VERSION.c.number)).where(AGENT_VERSION.c.agent == agent.id)
        async with self._sql.writing() as connection:
            number = ((await connection.execute(newest)).scalar_one() or 0) + 1
            values = {"agent": agent.id, "number": number, "document": agent.draft, "author": author, "created": now}
            row = (await connection.execute(insert(AGENT_VERSION).values(values).returning(AGENT_VERSION))).one()
            old = [AGENT_VERSION.c.number <= number - KEPT_VERSIONS, AGENT_VERSION.c.number != agent.live]
            await connection.execute(delete(AGENT_VERSION).where(AGENT_VERSION.c.agent == agent.id, *old))
        return _version(row)

    async def read_version(self, agent: int, number: int) -> AgentVersionRow | None:
        found = (
            select(AGENT_VERSION)
            .join(AGENT, AGENT.c.id == AGENT_VERSION.c.agent)
            .where(AGENT.c.tenant == self._tenant, AGENT.c.id == agent, AGENT_VERSION.c.number == number)
        )
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else _version(row)

    async def versions(self, agent: int, before: int, limit: int) -> list[AgentVersionRow]:
        """Return versions with numbers below `before`, at most `limit`, the newest first."""
        found = (
            select(AGENT_VERSION)
            .join(AGENT, AGENT.c.id == AGENT_VERSION.c.agent)
            .where(AGENT.c.tenant == self._tenant, AGENT.c.id == agent, AGENT_VERSION.c.number < before)
            .order_by(AGENT_VERSION.c.number.desc())
            .limit(limit)
        )
        async with self._sql.reading() as connection:
            return [_version(row) for row in (await connection.execute(found)).all()]


def _agent(row: Row[Any]) -> AgentRow:
    return AgentRow(row.id, row.tenant, row.name, row.notes, row.draft, row.live, row.version, row.created)


def _version(row: Row[Any]) -> AgentVersionRow:
    return AgentVersionRow(row.agent, row.number, row.document, row.author, row.created)
