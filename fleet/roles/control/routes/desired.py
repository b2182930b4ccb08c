"""`/v1/devices/{mac}/desired` and `/v1/devices:drift`: what devices should be set to, and where they are not."""

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import Request, Response

from fleet.adapters.redis.devices.own_state import OwnState
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows
from fleet.adapters.sql.desired_rows import DesiredRows, DesiredState, TooManyProperties
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.transaction import Sql
from fleet.core.desired_patch import document_of, merge
from fleet.core.desired_tools import fault_of_tool
from fleet.core.permissions import AGENTS_WRITE, DEVICES_COMMAND, DEVICES_DANGEROUS, DEVICES_READ
from fleet.core.tool_policy import risk_of
from fleet.roles.control.access import Principal, Who, milliseconds
from fleet.roles.control.agents.compiler import AgentCompiler
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.device_calls import fit, shown
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.control.desired import DesiredDocument, DesiredPatch, DesiredPropertyView
from fleet.wire.control.shapes import ListPage, time_of, time_or_none


class DesiredRoutes:
    """Reads and changes desired states; the leader of control acts on them."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        self._own, self._kept = OwnDevices(services), OwnState(services.store)
        self._lists, self._compiler = ToolLists(services.store), AgentCompiler(services.database, services.store)
        path = "/devices/{mac}/desired"
        routes.add(f"GET {path}", self.read, DEVICES_READ, model=DesiredDocument)
        routes.add(f"PATCH {path}", self.change, DEVICES_COMMAND, model=DesiredDocument, notes=VERSIONED)
        routes.add("GET /devices:drift", self.drift, DEVICES_READ)

    async def read(self, who: Who, mac: str) -> Response:
        """Return what a device should be set to, what it reports, and what became of each property."""
        device = await self._own.known(who, mac)
        state = await DesiredRows(self._database, who.tenant).read(device)
        document = await self._document(self._database, who, state)
        return Response(
            document.model_dump_json().encode(), 200, {"ETag": etag(state.version)}, media_type="application/json"
        )

    async def change(self, request: Request, who: Who, mac: str, body: DesiredPatch) -> Response:
        """Change what a device should be set to, by a merge patch. A connected device is set at once, others later.

        Dangerous tools also need the scope devices:dangerous, an agent needs agents:write.
        """
        device, version = await self._own.known(who, mac), expected_version(request)
        patch = body.desired.model_dump(exclude_unset=True)
        given = "agent" in patch
        agent = patch.pop("agent", None)
        await self._check(who, device, patch, agent=given)
        async with self._services.changes.begin(request) as change:
            try:
                changed = await DesiredRows(change.sql, who.tenant).change(
                    device,
                    patch,
                    {str(name): one for name, one in body.policies.items()},
                    milliseconds(),
                    version=version,
                )
            except TooManyProperties as error:
                raise Problem(409, "too-many", str(error)) from error
            if changed is None:
                raise not_found("device")
            if given:
                await _assign(change.sql, who, device, agent)
            before, after = changed
            old, new = ({"desired": _shown(one), "policies": _policies(one)} for one in (before, after))
            await change.audit(
                "device.desire", f"device/{device}", before=old, after={**new, **({"agent": agent} if given else {})}
            )
            document = await self._document(change.sql, who, after)
            answer = change.answer(document, headers={"ETag": etag(after.version)})
        if given:
            await self._compiler.settle(who.tenant, [device])
        return answer

    async def drift(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[DesiredDocument]:
        """Return the devices that report another value than they should. The query `drift` finds them, too."""
        place = self._services.cursors.read(who, "drift", cursor)
        found = await DesiredRows(self._database, who.tenant).drifting(int(str(place[0])) if place else -1, limit + 1)
        items = [await self._document(self._database, who, one, own={}) for one in found[:limit]]
        last = [mac_number(found[limit - 1].mac)] if len(found) > limit else None
        return ListPage(items=items, next=self._services.cursors.write(who, "drift", last) if last else None)

    async def _check(self, who: Principal, device: str, patch: Mapping[str, Any], *, agent: bool) -> None:
        """Check what a change needs beyond its shape.

        Raises:
            Problem: A scope is missing (403), or a call of a tool does not fit (422).
        """
        tools = {name: arguments for name, arguments in (patch.get("tools") or {}).items() if arguments is not None}
        dangerous = any(risk_of(name, "device") == "dangerous" for name in tools)
        for scope, needed in ((DEVICES_DANGEROUS, dangerous), (AGENTS_WRITE, agent)):
            if needed and scope not in who.scopes:
                raise Problem(403, "scope-missing", f"the token has not the scope {scope}")
        check_tools(tools)
        if tools:
            known = await DesiredRows(self._database, who.tenant).read(device)
            wanted = merge(document_of(known.properties).get("tools", {}), tools)
            for tool in await self._lists.read(device):
                if tool.name in tools:
                    fit(tool, wanted[tool.name])

    async def _document(
        self, sql: Sql, who: Principal, state: DesiredState, own: Mapping[str, str] | None = None
    ) -> DesiredDocument:
        kept = (await self._kept.read([state.mac]))[state.mac] if own is None else own
        reported = {**state.reported, **{name: value for name, value in kept.items() if value}}
        given = await AssignmentRows(sql, who.tenant).read("device", mac_number(state.mac)) if own is None else None
        desired = {**document_of(state.properties), **({"agent": given.agent} if given else {})}
        properties = [
            DesiredPropertyView(
                name=name,
                desired=one.value,
                reported=reported.get(name),
                policy=one.policy,
                state=one.state,
                text=one.text,
                since=time_of(one.since),
            )
            for name, one in sorted(state.properties.items())
        ]
        return DesiredDocument(
            device=state.mac,
            version=state.version,
            desired=desired,
            policies=_policies(state),
            reported=reported,
            reported_at=time_or_none(state.reported_at),
            properties=properties,
            drift=any(one.state == "drift" for one in properties),
        )


async def _assign(sql: Sql, who: Principal, device: str, agent: int | None) -> None:
    rows, number = AssignmentRows(sql, who.tenant), mac_number(device)
    if agent is None:
        await rows.remove("device", number)
        return
    if await AgentRows(sql, who.tenant).read(agent) is None:
        raise not_found("agent")
    await rows.put(AssignmentRow("device", number, agent))


def check_tools(tools: Iterable[str]) -> None:
    """Check names of tools whose calls are to be desired.

    Raises:
        Problem: A call of one cannot be desired (422).
    """
    for name in tools:
        if reason := fault_of_tool(name):
            raise Problem(422, "invalid", reason, errors=[{"at": "body.desired.tools", "message": reason}])


def _policies(state: DesiredState) -> dict[str, Any]:
    return {name: one.policy for name, one in state.properties.items() if one.policy != "once"}


def _shown(state: DesiredState) -> dict[str, Any]:
    document = document_of(state.properties)
    tools = {name: shown(arguments) for name, arguments in document.pop("tools", {}).items()}
    return {**document, **({"tools": tools} if tools else {})}
