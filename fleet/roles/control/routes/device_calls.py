"""`/v1/devices/{mac}/tools/{name}:call` and `/calls`: operators call tools of a device, at most once each."""

import hashlib
import json
import re
import secrets
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.shards.operator_calls import CallRecord, OperatorCalls
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS, DEVICES_READ
from fleet.core.ports import ToolCall
from fleet.core.tool_policy import ToolSource, risk_of
from fleet.core.toolbox import Refusal, Toolbox
from fleet.core.user_tools import user_tool
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.idempotency import HEADER
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.waiting import Waiting, WaitSeconds
from fleet.wire import dialects
from fleet.wire.control.calls import ToolCallRequest, ToolCallState
from fleet.wire.control.shapes import time_of, time_or_none
from fleet.wire.mcp import ToolSpec
from fleet.wire.operator_calls import OperatorCall

KEPT_SECONDS: Final = 24 * 3600.0
"""How long a call with an Idempotency-Key is known."""
SHORT_SECONDS: Final = 900.0
"""How long one without a key is known after the time in which it may be sent, and after its end."""
_LONGEST_ID: Final = 64


class DeviceCallRoutes:
    """Calls of tools. A call waits in the queue of the device's shard, and the shard's owner makes it."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, store = services, services.store
        self._devices, self._lists, self._calls = Devices(store), ToolLists(store), OperatorCalls(store)
        self._own, self._waiting = OwnDevices(services), Waiting()
        path = "/devices/{mac}/tools/{name}:call"
        routes.add(f"POST {path}", self.call, DEVICES_COMMAND, model=ToolCallState)
        routes.add("GET /devices/{mac}/calls/{call}", self.read, DEVICES_READ, model=ToolCallState)

    async def call(
        self, request: Request, who: Who, mac: str, name: str, body: ToolCallRequest, wait: WaitSeconds = 0.0
    ) -> Response:
        """Call a tool: 200 with the outcome if it ended within `wait`, else 202 with the id to ask for it.

        A dangerous tool also needs the scope devices:dangerous. A repeated request with its Idempotency-Key is the same
        call, for 24 hours.
        """
        device = await self._own.known(who, mac)
        tool, source = await find_tool(self._devices, self._lists, device, name)
        if risk_of(tool.name, source) == "dangerous" and DEVICES_DANGEROUS not in who.scopes:
            raise Problem(403, "scope-missing", f"the token has not the scope {DEVICES_DANGEROUS}")
        arguments = fit(tool, body.arguments)
        key = request.headers.get(HEADER)
        number = _name(who, key, device, name)
        call = OperatorCall(device=device, call=number, tool=tool.name, arguments=arguments, tenant=who.tenant)
        async with self._services.changes.begin(request) as change:
            after = {"call": call.call, "tool": tool.name, "arguments": shown(arguments)}
            await change.audit("device.call", f"device/{device}", after=after)
        kept = KEPT_SECONDS if key else SHORT_SECONDS + body.within
        if await self._calls.put(call, body.within, kept) == "full":
            busy = "too many calls of yours in this part of the fleet wait or are remembered; try again later"
            raise Problem(429, "too-many-calls", busy, headers={"Retry-After": "5"})
        record = await self._waiting.until(lambda: self._record(device, call.call), lambda one: one.over, wait)
        return _answer(device, call.call, record)

    async def read(self, who: Who, mac: str, call: str) -> Response:
        """Return a call: 200 if it has ended, else 202.

        It is known for 15 minutes, with an Idempotency-Key for a day.
        """
        device = await self._own.known(who, mac)
        return _answer(device, call, await self._record(device, call[:_LONGEST_ID]))

    async def _record(self, device: str, call: str) -> CallRecord:
        record = await self._calls.find(device, call)
        if record is None:
            raise not_found("call")
        return record


async def find_tool(devices: Devices, lists: ToolLists, device: str, name: str) -> tuple[ToolSpec, ToolSource]:
    """Return a tool of a device, and whose it is; one for users only is found by its name.

    Raises:
        Problem: The device has no such tool (404).
    """
    firmware = dialects.find((await devices.read(device)).dialect).capabilities.firmware_tools
    listed = next((tool for tool in await lists.read(device) if tool.name == name), None)
    tool = listed or (user_tool(name) if firmware else None)
    if tool is None:
        raise not_found("tool")
    return tool, "device" if firmware else "program"


def fit(tool: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that the device takes.

    Raises:
        Problem: They do not fit the tool's schema (422).
    """
    box = Toolbox([tool.model_copy(update={"user_only": False})])
    try:
        prepared = box.prepare(ToolCall("", box.offers[0].name, json.dumps(arguments, allow_nan=False)))
    except (ValueError, RecursionError):
        prepared = None
    if prepared is None or isinstance(prepared, Refusal):
        reason = prepared.reason.removeprefix("error: not done, ") if prepared else "the arguments are no JSON"
        raise Problem(422, "bad-arguments", reason[:500], errors=[{"at": "body.arguments", "message": reason[:500]}])
    return prepared.arguments


def shown(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments for the audit log: addresses without what may be a secret in them."""
    return {
        key: re.sub(r"//[^/@]*@", "//", value).partition("?")[0] if isinstance(value, str) and "://" in value else value
        for key, value in arguments.items()
    }


def _name(who: Principal, key: str | None, device: str, tool: str) -> str:
    """Return the id of a call: always the same for an Idempotency-Key of a token."""
    if not key:
        return secrets.token_hex(16)
    return hashlib.sha256("\0".join((str(who.tenant), who.actor, key, device, tool)).encode()).hexdigest()[:32]


def _answer(device: str, call: str, record: CallRecord) -> Response:
    state = ToolCallState(
        id=call,
        device=device,
        tool=record.tool,
        state=record.state,
        text=record.text,
        queued=time_of(record.queued_ms),
        ended=time_or_none(record.ended_ms),
    )
    headers = {} if record.over else {"Location": f"/v1/devices/{device}/calls/{call}"}
    return JSONResponse(state.model_dump(mode="json"), 200 if record.over else 202, headers)
