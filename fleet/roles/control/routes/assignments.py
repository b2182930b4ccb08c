"""`/v1/assignments` and `/v1/agents/{agent}:assign`: whose agent it is."""

from fastapi import Request

from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows, Scope
from fleet.adapters.sql.assignment_rules import MOST_GROUPS
from fleet.adapters.sql.group_rows import GroupRows
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.permissions import AGENTS_READ, AGENTS_WRITE
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.agents.compiler import AgentCompiler, assigned_object
from fleet.roles.control.agents.reach import assignment_targets, check_number, whom_of
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.device_queries import check_agentless
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.agents import AgentId
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.agents import Assignment, Compiled, NewAssignment, Settled
from fleet.wire.control.shapes import ListPage


class AssignmentsRoutes:
    """Gives agents to devices, groups and the site, and takes them away."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._compiler = AgentCompiler(services.database, services.store)
        routes.add("GET /assignments", self.list_assignments, AGENTS_READ)
        routes.add("POST /agents/{agent}:assign", self.assign, AGENTS_WRITE)
        routes.add("POST /assignments:remove", self.remove, AGENTS_WRITE)
        routes.add("POST /agents:compile", self.compile, AGENTS_WRITE)

    async def list_assignments(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Assignment]:
        """Return whose agents there are: devices, then groups, then the site."""
        place = self._services.cursors.read(who, "assignments", cursor)
        after = (str(place[0]), int(str(place[1]))) if place else ("", 0)
        rows = await AssignmentRows(self._services.database, who.tenant).page(after, limit + 1)
        last = [rows[limit - 1].scope, rows[limit - 1].ref] if len(rows) > limit else None
        more = self._services.cursors.write(who, "assignments", last) if last else None
        return ListPage(items=[_assignment(row) for row in rows[:limit]], next=more)

    async def assign(self, agent: AgentId, body: NewAssignment, who: Who, request: Request) -> Settled:
        """Give an agent to a device, a group or the site; it counts from the next turn on.

        If more devices than `most` would get another agent, it is refused (409, `more-devices`).
        """
        if await AgentRows(self._services.database, who.tenant).read(agent) is None:
            raise not_found("agent")
        async with self._services.rules.begin(request, lambda: self._check_number(who, body, agent)) as change:
            if await AgentRows(change.sql, who.tenant).read(agent) is None:
                raise not_found("agent")
            scope, ref = await whom_of(change.sql, who, body)
            rows = AssignmentRows(change.sql, who.tenant)
            before = await rows.read(scope, ref)
            if scope == "group" and before is None and await rows.count("group") >= MOST_GROUPS:
                raise Problem(409, "too-many", f"{MOST_GROUPS} groups may have an agent")
            if scope == "group" and (group := await GroupRows(change.sql, who.tenant).read(ref)):
                check_agentless(group.query)
            await rows.put(AssignmentRow(scope, ref, agent, body.rank))
            old = {"agent": before.agent} if before else {}
            await change.audit("agent.assign", assigned_object(scope, ref), before=old, after={"agent": agent})
            await change.pin()
        return await self._settle(who, scope, ref)

    async def remove(self, body: NewAssignment, who: Who, request: Request) -> Settled:
        """Take the agent of a device, a group or the site away; `most` as with `:assign`."""
        async with self._services.rules.begin(request, lambda: self._check_number(who, body, None)) as change:
            scope, ref = await whom_of(change.sql, who, body)
            rows = AssignmentRows(change.sql, who.tenant)
            before = await rows.read(scope, ref)
            if before is None:
                raise not_found("assignment")
            await rows.remove(scope, ref)
            await change.audit("agent.unassign", assigned_object(scope, ref), before={"agent": before.agent}, after={})
            await change.pin()
        return await self._settle(who, scope, ref)

    async def compile(self, who: Who, request: Request) -> Compiled:
        """Write all agents and assignments into Redis again, as after a loss of Redis."""
        async with self._services.changes.begin(request) as change:
            await change.audit("agents.compile", "agents", before={}, after={})
            await change.pin()
        return await self._compiler.refresh(whole=True)

    async def _check_number(self, who: Principal, body: NewAssignment, agent: int | None) -> None:
        """Check that not more devices get another agent than whoever asks has said.

        Raises:
            Problem: There are more (409), or it names no device or group (404), or not exactly one (422).
        """
        whom = await whom_of(self._services.database, who, body)
        if whom[0] == "device" and body.most:
            return
        targets = await assignment_targets(self._services.database, who, whom, body, agent)
        check_number(await targets.count_at_most(), body.most, "assignments:preview")

    async def _settle(self, who: Principal, scope: Scope, ref: int) -> Settled:
        if scope == "site":
            await self._compiler.set_site(who.tenant)
        return await self._compiler.settle(who.tenant, [mac_text(ref)] if scope == "device" else ())


def _assignment(row: AssignmentRow) -> Assignment:
    return Assignment(
        agent=row.agent,
        device=mac_text(row.ref) if row.scope == "device" else None,
        group=row.ref if row.scope == "group" else None,
        site=row.scope == "site",
        rank=row.rank,
    )
