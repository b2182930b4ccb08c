"""The rules by which devices have agents: their own, then those of their groups in an order."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, String, and_, case, cast, literal, or_, select

from fleet.adapters.sql.device_conditions import Conditions
from fleet.adapters.sql.schema import ASSIGNMENT, DEVICE, GROUP, GROUP_MEMBER
from fleet.adapters.sql.text_conditions import Clause, text_meets
from fleet.adapters.sql.transaction import Sql
from fleet.core.query.conditions import Condition, QueryError, comparisons_of, names_field
from fleet.core.query.fields import DEVICE_FIELDS
from fleet.core.query.parser import parse

log = logging.getLogger(__name__)

MOST_GROUPS: Final = 100
"""Groups of a tenant that have an agent."""


@dataclass(frozen=True, slots=True)
class GroupRule:
    """An agent that a group has. Of several, the one with the highest rank counts, then that of the oldest group."""

    group: int
    agent: int
    rank: int
    members: Clause
    """Whether a row of `device` is one of the group."""

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the order of rules."""
        return -self.rank, self.group


def own_agent(tenant: int) -> ColumnElement[str]:
    """Return the agent that was given to a device itself, as text; NULL if there is none."""
    return (
        select(cast(ASSIGNMENT.c.agent, String))
        .where(ASSIGNMENT.c.tenant == tenant, ASSIGNMENT.c.scope == "device", ASSIGNMENT.c.ref == DEVICE.c.mac)
        .scalar_subquery()
    )


def agent_by(own: ColumnElement[Any], rules: Sequence[GroupRule], site: str) -> ColumnElement[str]:
    """Return the agent that counts for a device by the rules, as text.

    Args:
        own: That of the device itself; NULL for none.
        rules: Of its tenant's groups, in their order.
        site: The agent of all others; empty for none.
    """
    groups = [(rule.members, literal(str(rule.agent))) for rule in rules]
    return case((own.is_not(None), own), *groups, else_=literal(site))


async def group_rules(sql: Sql, tenant: int) -> Sequence[GroupRule]:
    """Return the rules of a tenant's groups in their order.

    Raises:
        Unavailable: The database does not answer.
    """
    found = (
        select(GROUP.c.id, GROUP.c.query, ASSIGNMENT.c.agent, ASSIGNMENT.c.rank)
        .join(ASSIGNMENT, and_(ASSIGNMENT.c.scope == "group", ASSIGNMENT.c.ref == GROUP.c.id))
        .where(ASSIGNMENT.c.tenant == tenant, GROUP.c.tenant == tenant)
        .order_by(ASSIGNMENT.c.rank.desc(), GROUP.c.id)
        .limit(MOST_GROUPS)
    )
    async with sql.reading() as connection:
        rows = (await connection.execute(found)).all()
    rules = []
    for row in rows:
        members = members_of(sql, tenant, row.id, row.query)
        if members is not None:
            rules.append(GroupRule(row.id, row.agent, row.rank, members))
    return rules


async def is_named(sql: Sql, tenant: int, names: Sequence[str]) -> bool:
    """Return whether the query of a group with an agent names a static group that has, or will have, one of the names.

    Raises:
        Unavailable: The database does not answer.
    """
    queries = (
        select(GROUP.c.id, GROUP.c.query)
        .join(ASSIGNMENT, and_(ASSIGNMENT.c.scope == "group", ASSIGNMENT.c.ref == GROUP.c.id))
        .where(ASSIGNMENT.c.tenant == tenant, GROUP.c.tenant == tenant, GROUP.c.query != "")
    )
    async with sql.reading() as connection:
        conditions = [_parsed(row.id, row.query) for row in (await connection.execute(queries)).all()]
        named = [one for condition in conditions if condition for one in comparisons_of(condition, "group")]
        if not named:
            return False
        meets = [
            text_meets(literal(name, String), str(one.value), ":" if one.operator == ":" else "=")
            for one in named
            for name in names
        ]
        return bool((await connection.execute(select(or_(*meets)))).scalar_one())


def members_of(sql: Sql, tenant: int, group: int, query: str) -> Clause | None:
    """Return whether a row of `device` is one of a group; None if the group has no agent, whatever it was given."""
    if not query:
        return DEVICE.c.mac.in_(select(GROUP_MEMBER.c.mac).where(GROUP_MEMBER.c.group == group))
    condition = _parsed(group, query)
    # Its devices would leave it as soon as they had its agent. The API refuses that.
    if condition is None or names_field(condition, "agent"):
        return None
    return Conditions(tenant, sql.is_sqlite).clause(condition)


def _parsed(group: int, query: str) -> Condition | None:
    try:
        return parse(query, DEVICE_FIELDS, datetime.now(UTC))
    except QueryError as error:
        # An older version took the query of this group.
        log.warning("group not readable", extra={"group": group, "reason": str(error)})
        return None
