"""`/v1/assignments` and `/v1/agents/{agent}:assign`: whose agent it is."""

from fastapi import Request

from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.assignment_effects import AssignmentEffects
from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows, Scope
from fleet.adapters.sql.assignment_rules import MOST_GROUPS
from fleet.adapters.sql.group_rows import GroupRows
from fleet.adapters.sql.job_targets import JobTargets
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.transaction import Sql
from fleet.core.permissions import AGENTS_READ, AGENTS_WRITE
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.agents.compiler import AgentCompiler, assigned_object
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.device_dry_run import DeviceDryRun, preview_of
from fleet.roles.control.device_queries import check_agentless
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.agents import AgentId
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.agents import (
    Assignment,
    AssignmentPreview,
    AssignmentTrial,
    Compiled,
    NewAssignment,
    Settled,
)
from fleet.wire.control.shapes import ListPage
from fleet.wire.topics import canonical_mac


class AssignmentsRoutes:
    """Gives agents to devices, groups and the site, and takes them away."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._compiler, self._dry_run = AgentCompiler(services.database, services.store), DeviceDryRun(services)
        routes.add("GET /assignments", self.list_assignments, AGENTS_READ)
        routes.add("POST /agents/{agent}:assign", self.assign, AGENTS_WRITE)
        routes.add("POST /assignments:preview", self.preview, AGENTS_READ)
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

    async def preview(self, body: AssignmentTrial, who: Who) -> AssignmentPreview:
        """Return which devices would get another agent, and change nothing."""
        if body.agent is not None and await AgentRows(self._services.database, who.tenant).read(body.agent) is None:
            raise not_found("agent")
        scope, ref = await _whom(self._services.database, who, body)
        targets = await self._targets(who, scope, ref, body, body.agent)
        counts = await targets.count()
        found = await self._dry_run.kinds(who.tenant, targets, counts)
        return AssignmentPreview(
            **preview_of(counts).model_dump(),
            changing=counts.reached,
            talking=found.scaled(sum(count for kind, count in found.kinds.items() if kind.session)),
        )

    async def assign(self, agent: AgentId, body: NewAssignment, who: Who, request: Request) -> Settled:
        """Give an agent to a device, a group or the site; it counts from the next turn on.

        If more devices than `most` would get another agent, it is refused (409, `more-devices`).
        """
        await self._check_number(who, body, agent)
        async with self._services.changes.begin(request) as change:
            if await AgentRows(change.sql, who.tenant).read(agent) is None:
                raise not_found("agent")
            scope, ref = await _whom(change.sql, who, body)
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
        await self._check_number(who, body, None)
        async with self._services.changes.begin(request) as change:
            scope, ref = await _whom(change.sql, who, body)
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

    async def _targets(
        self, who: Principal, scope: Scope, ref: int, body: NewAssignment, agent: int | None
    ) -> JobTargets:
        """Return the devices of a change, without an agent of one that takes it away."""
        rank = body.rank
        if agent is None and (known := await AssignmentRows(self._services.database, who.tenant).read(scope, ref)):
            rank = known.rank
        wanted = AssignmentRow(scope, ref, agent or 0, rank)
        return await AssignmentEffects(self._services.database, who.tenant).targets(wanted, removed=agent is None)

    async def _check_number(self, who: Principal, body: NewAssignment, agent: int | None) -> None:
        """Check that not more devices get another agent than whoever asks has said.

        Raises:
            Problem: There are more (409), or it names no device or group (404), or not exactly one (422).
        """
        scope, ref = await _whom(self._services.database, who, body)
        if scope == "device" and body.most:
            return
        counts = await (await self._targets(who, scope, ref, body, agent)).count()
        if counts.reached > body.most:
            detail = f"{counts.reached} devices would get another agent, and `most` is {body.most}"
            raise Problem(409, "more-devices", f"{detail}: see POST /v1/assignments:preview, or make a job")

    async def _settle(self, who: Principal, scope: Scope, ref: int) -> Settled:
        if scope == "site":
            await self._compiler.set_site(who.tenant)
        return await self._compiler.settle(who.tenant, [mac_text(ref)] if scope == "device" else ())


async def _whom(sql: Sql, who: Principal, body: NewAssignment) -> tuple[Scope, int]:
    """Return scope and ref of an assignment, if what it names is the tenant's.

    Raises:
        Problem: It names not exactly one (422), or there is no such device or group (404).
    """
    if sum(one is not None for one in (body.device, body.group, body.site)) != 1:
        raise Problem(422, "invalid", "name exactly one of device, group and site")
    rows = AssignmentRows(sql, who.tenant)
    if body.device is not None:
        mac = canonical_mac(body.device)
        if mac is None or not await rows.has_device(mac):
            raise not_found("device")
        return "device", mac_number(mac)
    if body.group is not None:
        if not await rows.has_group(body.group):
            raise not_found("group")
        return "group", body.group
    return "site", 0


def _assignment(row: AssignmentRow) -> Assignment:
    return Assignment(
        agent=row.agent,
        device=mac_text(row.ref) if row.scope == "device" else None,
        group=row.ref if row.scope == "group" else None,
        site=row.scope == "site",
        rank=row.rank,
    )
