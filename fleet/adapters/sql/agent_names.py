"""The names of the agents of devices.

The column `device.agent` has the id of the agent that counts for the device, as text. People read and write the agent's
name. So renaming an agent changes one row, and the index of the column finds its devices. A text that is no id of the
device's tenant means no agent: earlier versions wrote such texts, and `AgentCompiler` replaces them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, String, and_, cast, func, select, true

from fleet.adapters.sql.schema import AGENT, DEVICE
from fleet.adapters.sql.text_conditions import Clause, text_meets
from fleet.core.query.conditions import AllOf, AnyOf, Comparison, Condition, Negation

ONE_OF = "one of"
"""Operator of conditions of `with_agent_ids`: the column is one of the texts of the value, with commas between them."""
_ID = cast(AGENT.c.id, String)
_NO_ID = "-"


def agent_meets(tenant: int, value: str, operator: str) -> Clause:
    """Return whether a device's agent has a name (`=`), a name with this in it or of this form (`:`), or is `ONE_OF`.

    An empty name is that of no agent.
    """
    if operator == ONE_OF:
        ids = value.split(",")
        return DEVICE.c.agent.in_(ids) if len(ids) > 1 else DEVICE.c.agent == value
    if operator == "=" and not value:
        return DEVICE.c.agent == ""
    return true() if _means_all(value, operator) else DEVICE.c.agent.in_(_named(tenant, value, operator))


def with_agent_ids(connection: Connection, tenant: int, condition: Condition) -> Condition:
    """Return a condition with ids in place of the names of agents.

    PostgreSQL then knows how many devices have these agents, and takes the index for few of them: with a subquery it
    expects the mean of all agents.
    """

    def translated(part: Condition) -> Condition:
        if isinstance(part, AllOf):
            return AllOf(tuple(map(translated, part.parts)))
        if isinstance(part, AnyOf):
            return AnyOf(tuple(map(translated, part.parts)))
        if isinstance(part, Negation):
            return Negation(translated(part.part))
        if not isinstance(part, Comparison) or part.field != "agent":
            return part
        value, operator = str(part.value), "=" if part.operator == "!=" else part.operator
        if _means_all(value, operator):
            return part
        ids = connection.execute(_named(tenant, value, operator)).scalars().all() if value else [""]
        found = Comparison("agent", ONE_OF, ",".join(ids or [_NO_ID]))
        return Negation(found) if part.operator == "!=" else found

    return translated(condition)


def count_agents(found: Select[tuple[str, int]], tenant: int) -> Select[tuple[str, int]]:
    """Return the sums by name of counts by the column."""
    by_id = found.subquery()
    text, count = by_id.c
    name = func.coalesce(AGENT.c.name, "")
    joined = by_id.outerjoin(AGENT, and_(AGENT.c.tenant == tenant, text == _ID))
    return select(name, func.sum(count)).select_from(joined).group_by(name)


def read_names(connection: Connection, agents: Iterable[tuple[int, str]]) -> Mapping[tuple[int, str], str]:
    """Return the names of agents by tenant and text of the column; of those that there are."""
    numbers = {int(text) for _, text in agents if text.isascii() and text.isdigit() and len(text) < len(str(2**63))}
    if not numbers:
        return {}
    rows = connection.execute(select(AGENT.c.tenant, AGENT.c.id, AGENT.c.name).where(AGENT.c.id.in_(numbers)))
    return {(row.tenant, str(row.id)): row.name for row in rows}


def _named(tenant: int, value: str, operator: str) -> Select[Any]:
    return select(_ID).where(AGENT.c.tenant == tenant, text_meets(AGENT.c.name, value, operator))


def _means_all(value: str, operator: str) -> bool:
    """Return whether every name is meant, also the empty one."""
    return operator == ":" and not value.strip("*")
