"""Which devices have an agent by the rules, who gave it to them, and what they would have without it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, case, false, literal, or_, true

from fleet.adapters.sql.agent_names import read_names
from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.assignment_rules import GroupRule, agent_by, group_rules, own_agent
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_targets import JobTarget, JobTargets
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.text_conditions import Clause
from fleet.adapters.sql.token_rows import FIRST_TENANT

BY_DEVICE: Final = "it has the agent itself"
BY_GROUP: Final = "one of its groups has the agent"
BY_SITE: Final = "the site has the agent"


class AgentUses:
    """Counts the devices of one tenant by an agent. The rules count: who is given it later has it, too.

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
        rules, site = await self._rules(), await self._site()
        given = or_(false(), self._own == str(agent), *_members(rules, agent))
        among = true() if site == str(agent) else given
        return self._targets(agent_by(self._own, rules, site) == str(agent), among)

    async def late(self, agent: int) -> int:
        """Count the devices that get the agent, or another one instead, but do not have it yet in Redis."""
        wanted = agent_by(self._own, await self._rules(), await self._site()) == str(agent)
        names = [str(agent), *([""] if await self.is_usual(agent) else [])]
        return (await self._targets(wanted != DEVICE.c.agent.in_(names)).count()).devices

    async def givers(self, agent: int) -> Mapping[str, int]:
        """Count the devices that have an agent by why they have it."""
        groups = or_(false(), *_members(await self._rules(), agent))
        reason = case((self._own.is_not(None), literal(BY_DEVICE)), (groups, literal(BY_GROUP)), else_=literal(BY_SITE))
        return await (await self.targets(agent)).count_by(reason)

    async def followers(self, agent: int) -> Mapping[str, int]:
        """Count the devices that have an agent by the name of the one that is theirs without it; empty for none."""
        rules, site = await self._rules(), await self._site()
        cases: list[tuple[Clause, ColumnElement[Any]]] = [
            (one.members, literal(str(one.agent))) for one in rules if one.agent != agent
        ]
        left = literal("" if site == str(agent) else site)
        found = await (await self.targets(agent)).count_by(case(*cases, else_=left) if cases else left)
        names = await self._database.look(
            lambda connection: read_names(connection, [(self._tenant, text) for text in found]), tenant=self._tenant
        )
        return {names.get((self._tenant, text), ""): count for text, count in found.items()}

    def _targets(self, condition: Clause, among: Clause | None = None) -> JobTargets:
        return JobTargets(self._database, JobTarget(self._tenant, condition, revoked=True, among=among))

    async def _rules(self) -> Sequence[GroupRule]:
        return await group_rules(self._database, self._tenant)

    async def _site(self) -> str:
        row = await AssignmentRows(self._database, self._tenant).read("site", 0)
        return str(row.agent) if row else ""


def _members(rules: Sequence[GroupRule], agent: int) -> list[Clause]:
    return [one.members for one in rules if one.agent == agent]
