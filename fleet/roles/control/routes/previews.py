"""Dry runs of assignments, groups and agents: which devices would get another agent, or another version of theirs."""

from collections.abc import Mapping, Sequence

from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.agent_uses import AgentUses
from fleet.adapters.sql.assignment_rows import AssignmentRows, Scope
from fleet.adapters.sql.group_rows import GroupRow, GroupRows
from fleet.adapters.sql.job_targets import JobTargets, TargetCounts
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.core.permissions import AGENTS_READ, DEVICES_READ
from fleet.ground.errors import SlowQuery
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.agents.reach import assignment_targets, group_targets, whom_of
from fleet.roles.control.device_dry_run import DeviceDryRun, preview_of
from fleet.roles.control.device_queries import read_query
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.agents import AgentId
from fleet.roles.control.routes.groups import GroupId
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.agents import AgentPreview, AgentTrial, AssignmentPreview, AssignmentTrial, NextAgent
from fleet.wire.control.groups import GroupTrial
from fleet.wire.control.jobs import SkipCount

_MOST_NAMED = 30
"""MACs of a query."""


class PreviewRoutes:
    """Counts what changes of agents, of their assignments and of groups would do, and changes nothing."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._database, self._dry_run = services.database, DeviceDryRun(services)
        routes.add("POST /assignments:preview", self.preview_assignment, AGENTS_READ, repeatable=True)
        routes.add("POST /groups/{group}:preview", self.preview_group, DEVICES_READ, repeatable=True)
        routes.add("POST /agents/{agent}:preview", self.preview_agent, AGENTS_READ, repeatable=True)

    async def preview_assignment(self, body: AssignmentTrial, who: Who) -> AssignmentPreview:
        """Return which devices would get another agent, and change nothing."""
        if body.agent is not None and await AgentRows(self._database, who.tenant).read(body.agent) is None:
            raise not_found("agent")
        whom = await whom_of(self._database, who, body)
        targets = await assignment_targets(self._database, who, whom, body, body.agent)
        counts = await targets.count_at_most()
        return await self._preview(who, targets, counts, await self._query(who, whom, counts))

    async def preview_group(self, group: GroupId, body: GroupTrial, who: Who) -> AssignmentPreview:
        """Return which devices would get another agent by a change of a group, and change nothing.

        `devices` are those that would join or leave the group, if it has an agent. They are none if it has none. By
        another name all members may get another agent, if the query of a group with an agent names the group.
        """
        row = await GroupRows(self._database, who.tenant).read(group)
        if row is None:
            raise not_found("group")
        targets = await group_targets(self._database, who, row, body)
        if targets is None:
            return AssignmentPreview(devices=0, online=0, skipped=[], changing=0, talking=0)
        counts = await targets.count_at_most()
        return await self._preview(who, targets, counts, _joining(row, body, counts))

    async def preview_agent(self, agent: AgentId, body: AgentTrial, who: Who) -> AgentPreview:
        """Return which devices have an agent, as before another version of it counts or it is deleted.

        The assignments count, also where devices are still being given their agents: see `late`.
        """
        row = await AgentRows(self._database, who.tenant).read(agent)
        if row is None:
            raise not_found("agent")
        uses = AgentUses(self._database, who.tenant)
        targets = await uses.targets(agent)
        query = f"agent={_quoted(row.name)}" + (' OR agent=""' if await uses.is_usual(agent) else "")
        preview = await self._preview(who, targets, await targets.count_at_most(), query)
        given: Mapping[str, int] = {}
        instead: Mapping[str, int] = {}
        late = 0
        try:
            late = await uses.late(agent)
            given = await uses.givers(agent)
            instead = await uses.followers(agent) if body.deleted else {}
        except SlowQuery:
            pass  # The query of a group. How many devices have the agent at most is known nevertheless.
        return AgentPreview(
            **preview.model_dump(),
            given=[SkipCount(reason=reason, devices=count) for reason, count in sorted(given.items())],
            instead=[NextAgent(agent=name, devices=count) for name, count in sorted(instead.items())],
            late=late,
        )

    async def _preview(
        self, who: Principal, targets: JobTargets, counts: TargetCounts, query: str
    ) -> AssignmentPreview:
        found = await self._dry_run.kinds(who.tenant, targets, counts)
        return AssignmentPreview(
            **preview_of(counts).model_dump(),
            changing=counts.reached,
            talking=found.scaled(sum(count for kind, count in found.kinds.items() if kind.session)),
            counted=counts.counted,
            query=query if counts.counted else "",
        )

    async def _query(self, who: Principal, whom: tuple[Scope, int], counts: TargetCounts) -> str:
        """Return a query for the devices that an assignment changes; empty if there is none."""
        scope, ref = whom
        if scope == "device":
            return f"mac={mac_text(ref)}"
        if scope == "group":
            row = await GroupRows(self._database, who.tenant).read(ref)
            return _members(row) if row and not counts.skipped else ""
        # Of other tenants, devices show the agent of the site as they show any other.
        given = await AssignmentRows(self._database, who.tenant).read("site", 0)
        return 'agent=""' if who.tenant == FIRST_TENANT or given is None else ""


def _joining(group: GroupRow, trial: GroupTrial, counts: TargetCounts) -> str:
    """Return a query for the devices that a change of a group changes; empty if there is none."""
    named: Sequence[str] = trial.add or trial.remove or ()
    if counts.skipped or len(named) > _MOST_NAMED:
        return ""
    if named:
        return " OR ".join(f"mac={mac}" for mac in named) if counts.devices == len(set(named)) else ""
    if trial.query is None:
        return _members(group)
    text = f"(({group.query}) AND NOT ({trial.query})) OR (({trial.query}) AND NOT ({group.query}))"
    try:
        read_query(text)
    except Problem:  # It is too long.
        return ""
    return text


def _members(group: GroupRow) -> str:
    return group.query or f"group={_quoted(group.name)}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
