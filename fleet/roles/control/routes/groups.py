"""`/v1/groups`: static groups, and dynamic ones that are saved queries."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import JSONResponse

from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.device_search import DeviceSearch
from fleet.adapters.sql.group_rows import GroupChange, GroupRow, GroupRows
from fleet.adapters.sql.token_rows import NameTaken
from fleet.core.permissions import DEVICES_READ, GROUPS_WRITE
from fleet.core.query.conditions import EVERYTHING, AllOf, Comparison
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.agents.reach import Most, check_group
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.device_queries import check_agentless, device_json, page_of, read_fields, read_query
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.control.devices import DevicePage, DeviceQuery
from fleet.wire.control.groups import Group, GroupAddition, GroupPage, GroupPatch, GroupTrial, MemberChange, MemberMacs
from fleet.wire.control.shapes import USUAL_MOST

GroupId = Annotated[int, Path(ge=1, lt=2**62)]
_MOST_GROUPS = 1_000
"""Groups of a tenant."""


class GroupRoutes:
    """Groups of devices."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        routes.add("GET /groups", self.list, DEVICES_READ)
        routes.add("POST /groups", self.add, GROUPS_WRITE, model=Group, status=201)
        routes.add("GET /groups/{group}", self.read, DEVICES_READ, model=Group)
        routes.add("PATCH /groups/{group}", self.change, GROUPS_WRITE, model=Group, notes=VERSIONED)
        routes.add("DELETE /groups/{group}", self.remove, GROUPS_WRITE, model=None, status=204, notes=VERSIONED)
        routes.add("GET /groups/{group}/members", self.members, DEVICES_READ, model=DevicePage)
        routes.add("POST /groups/{group}/members:add", self.add_members, GROUPS_WRITE, model=MemberChange)
        routes.add("POST /groups/{group}/members:remove", self.remove_members, GROUPS_WRITE, model=MemberChange)

    async def list(
        self,
        who: Who,
        cursor: Cursor = "",
        limit: Limit = 100,
    ) -> GroupPage:
        """Return the groups, in the order in which they were made."""
        place = self._services.cursors.read(who, "groups", cursor)
        found = await GroupRows(self._database, who.tenant).page(int(str(place[0])) if place else 0, limit + 1)
        more = self._services.cursors.write(who, "groups", [found[limit - 1].id]) if len(found) > limit else None
        return GroupPage(items=[_shape(row) for row in found[:limit]], next=more)

    async def add(self, request: Request, who: Who, body: GroupAddition) -> Response:
        """Make a group; with a query it is dynamic: its members are the devices that the query means at the time."""
        read_query(body.query)
        async with self._services.changes.begin(request) as change:
            rows = GroupRows(change.sql, who.tenant)
            if await rows.count() >= _MOST_GROUPS:
                raise Problem(409, "too-many-groups", f"there are at most {_MOST_GROUPS} groups")
            try:
                row = await rows.add(body.name, body.query, body.notes)
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            await change.audit("group.create", f"group/{row.id}", after=body.model_dump())
            return change.answer(_shape(row), status=201, headers={"ETag": etag(row.version)})

    async def read(self, who: Who, group: GroupId) -> JSONResponse:
        """Return a group."""
        row = await self._row(who, group)
        return JSONResponse(_shape(row).model_dump(), headers={"ETag": etag(row.version)})

    async def change(self, request: Request, who: Who, group: GroupId, body: GroupPatch) -> Response:
        """Change a group; what the body does not name stays.

        If the group has an agent, and more devices than `most` would get another one by its new query, it is refused
        (409, `more-devices`). So is another name, if the query of a group with an agent names it, by its members.
        """
        version = expected_version(request)
        read_query(body.query or "")
        async with self._services.rules.begin(request, lambda: self._check_change(who, group, body)) as change:
            rows = GroupRows(change.sql, who.tenant)
            if body.query and await AssignmentRows(change.sql, who.tenant).read("group", group):
                check_agentless(body.query)
            try:
                changed = await rows.change(group, GroupChange(body.name, body.query, body.notes), version=version)
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            if changed is None:
                raise not_found("group")
            before, after = (_shape(one).model_dump() for one in changed)
            await change.audit("group.update", f"group/{group}", before=before, after=after)
            return change.answer(_shape(changed[1]), headers={"ETag": etag(changed[1].version)})

    async def remove(self, request: Request, who: Who, group: GroupId, most: Most = USUAL_MOST) -> Response:
        """Delete a group. Its devices stay; if more than `most` would get another agent, it is refused (409)."""
        trial = GroupTrial()
        async with self._services.rules.begin(request, lambda: self._check_number(who, group, trial, most)) as change:
            rows = GroupRows(change.sql, who.tenant)
            row = await rows.read(group)
            if row is None or not await rows.remove(group, version=expected_version(request)):
                raise not_found("group")
            await AssignmentRows(change.sql, who.tenant).remove("group", group)
            await change.audit("group.delete", f"group/{group}", before=_shape(row).model_dump())
            return change.answer(status=204)

    async def members(self, who: Who, group: GroupId, query: Annotated[DeviceQuery, Query()]) -> JSONResponse:
        """Return a page of the devices in a group; with a filter, of those that it means, too."""
        row, names = await self._row(who, group), read_fields(query.fields)
        inside = read_query(row.query) if row.query else Comparison("group", "=", row.name)
        wanted = read_query(query.filter)
        condition = inside if wanted == EVERYTHING else AllOf((inside, wanted))
        search = DeviceSearch(self._database, who.tenant)
        page = await page_of(search, condition, query, self._services.cursors, who)
        return JSONResponse({"items": [device_json(one, names) for one in page.devices], "next": page.cursor or None})

    async def add_members(self, request: Request, who: Who, group: GroupId, body: MemberMacs) -> Response:
        """Add devices to a static group; if it has an agent, at most `most` of them get another one (409)."""
        return await self._change_members(request, who, group, body, "add")

    async def remove_members(self, request: Request, who: Who, group: GroupId, body: MemberMacs) -> Response:
        """Remove devices from a static group; if it has an agent, at most `most` of them get another one (409)."""
        return await self._change_members(request, who, group, body, "remove")

    async def _change_members(
        self, request: Request, who: Principal, group: int, body: MemberMacs, verb: str
    ) -> Response:
        macs = list(dict.fromkeys(body.macs))
        trial = GroupTrial(add=macs) if verb == "add" else GroupTrial(remove=macs)
        async with self._services.rules.begin(
            request, lambda: self._check_number(who, group, trial, body.most)
        ) as change:
            rows = GroupRows(change.sql, who.tenant)
            row = await rows.read(group)
            if row is None:
                raise not_found("group")
            if row.query:
                raise Problem(409, "dynamic", "the members of a dynamic group follow from its query")
            unknown = await rows.add_members(group, macs) if verb == "add" else []
            changed = len(macs) - len(unknown) if verb == "add" else await rows.remove_members(group, macs)
            known = [mac for mac in macs if mac not in unknown]
            await change.audit(f"group.members.{verb}", f"group/{group}", after={"macs": known})
            return change.answer(MemberChange(changed=changed, unknown=unknown))

    async def _check_change(self, who: Principal, group: int, body: GroupPatch) -> None:
        row = await self._row(who, group)
        if body.query is not None:
            await check_group(self._database, who, row, GroupTrial(query=body.query), body.most)
        if body.name is not None:
            await check_group(self._database, who, row, GroupTrial(name=body.name), body.most)

    async def _check_number(self, who: Principal, group: int, trial: GroupTrial, most: int) -> None:
        """See `reach.check_group`."""
        row = await GroupRows(self._database, who.tenant).read(group)
        await check_group(self._database, who, row, trial, most)

    async def _row(self, who: Principal, group: int) -> GroupRow:
        row = await GroupRows(self._database, who.tenant).read(group)
        if row is None:
            raise not_found("group")
        return row


def _shape(row: GroupRow) -> Group:
    kind = "dynamic" if row.query else "static"
    return Group(id=row.id, name=row.name, kind=kind, query=row.query, notes=row.notes, version=row.version)
