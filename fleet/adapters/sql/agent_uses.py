"""Which devices have an agent now, who gave it to them, and what they would have without it."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, case, false, literal, or_

from fleet.adapters.sql.agent_names import read_names
from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.assignment_rules import group_rules, own_agent
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_targets import JobTarget, JobTargets
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.text_conditions import Clause
from fleet.adapters.sql.token_rows import FIRST_TENANT

BY_DEVICE: Final = "it has the agent itself"
BY_GROUP: Final = "one of its groups has the agent"
BY_SITE: Final = "the site has the agent"


class AgentUses:
    """Counts the devices of one tenant by an agent. What Redis has counts, as in queries: `agent=NAME` finds them.

    All methods raise `Unavailable` if the database does not answer, or not in time.

    Args:
        database: The registry.
        tenant: Whose.
    """

    def __init__(self, database: Database, tenant: int) -> None:
        self._database, self._tenant = database, tenant
        self._own = own_agent(tenant)

    async def is_usual(self, agent: int) -> bool:
        """Return whether the registry shows no agent for devices that have this one, as it is that of the site."""
        return self._tenant == FIRST_TENANT and await self._site() == str(agent)

    async def targets(self, agent: int) -> JobTargets:
        """Return the devices that have an agent."""
        names = [str(agent), *([""] if await self.is_usual(agent) else [])]
        return JobTargets(self._database, JobTarget(self._tenant, DEVICE.c.agent.in_(names), revoked=True))

    async def givers(self, agent: int) -> Mapping[str, int]:
        """Count the devices that have an agent by why they have it."""
        cases: list[tuple[Clause, Any]] = [(self._own == str(agent), literal(BY_DEVICE))]
        other = BY_GROUP
        if await self.is_usual(agent):
            cases.append((DEVICE.c.agent == "", literal(BY_SITE)))
        elif await self._site() == str(agent):
            rules = await group_rules(self._database, self._tenant)
            groups = or_(false(), *(one.members for one in rules if one.agent == agent))
            cases.append((groups, literal(BY_GROUP)))
            other = BY_SITE
        return await (await self.targets(agent)).count_by(case(*cases, else_=literal(other)))

    async def followers(self, agent: int) -> Mapping[str, int]:
        """Count the devices that have an agent by the name of the one that is theirs without it; empty for none."""
        rules = await group_rules(self._database, self._tenant)
        cases: list[tuple[Clause, ColumnElement[Any]]] = [
            (and_(self._own.is_not(None), self._own != str(agent)), self._own)
        ]
        cases += [(one.members, literal(str(one.agent))) for one in rules if one.agent != agent]
        site = await self._site()
        left = literal("" if site == str(agent) else site)
        found = await (await self.targets(agent)).count_by(case(*cases, else_=left))
        names = await self._database.look(
            lambda connection: read_names(connection, [(self._tenant, text) for text in found]), tenant=self._tenant
        )
        return {names.get((self._tenant, text), ""): count for text, count in found.items()}

    async def _site(self) -> str:
        row = await AssignmentRows(self._database, self._tenant).read("site", 0)
        return str(row.agent) if row else ""
