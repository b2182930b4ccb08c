"""Group C: Device tools. Finding out what a device can do is here, calling its tools in `mcp_calls` and `mcp_waits`."""

import asyncio
import json

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import DISCOVERY_SECONDS, CheckContext, discovered
from fleet.workbench.conformance.tool_use import ask, is_offered, number_of, offered, page, saying, tool, tooled
from fleet.workbench.conformance.verdict import Failed, require, span
from fleet.workbench.sim.messages.message import JsonObject, item, member, text
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.tools import Intercept
from fleet.workbench.sim.tools import mcp_server
from fleet.workbench.sim.tools.tool import Tool

GROUP = Group("C", "Device tools")

_MOST_REQUESTS = 64
"""For one list that never ends; the contract's guard is 32 pages, and a list may be begun once more."""
_LONG = "Tells nothing of interest, at the length that careful descriptions of tools have. " * 6
_PAGED = 30


@GROUP.check("C1", "a device with tools is asked for them in the right order and with numbers as ids")
async def asks_in_order(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        await discovered(device)
        methods = [request.method for request in device.tools.requests]
        order = ("initialize", "notifications/initialized", "tools/list")
        missing = [method for method in order if method not in methods]
        require(not missing, f"no {' and no '.join(missing)}, only {', '.join(methods)}")
        firsts = [methods.index(method) for method in order]
        require(firsts == sorted(firsts), f"in another order: {', '.join(methods)}")
        ids = [request.id for request in device.tools.requests if not request.method.startswith("notifications")]
        require(all(type(id_) is int and 0 < id_ < 2**31 for id_ in ids), f"ids {ids}")
        require(len(set(ids)) == len(ids), f"an id was used twice: {ids}")
        null = [one.method for one in device.tools.requests if "params" in one.body and one.body["params"] is None]
        require(not null, f"params is null: {', '.join(null)}")
        return ", ".join(methods)


@GROUP.check("C2", "a tool list of several pages is read to its end", steered=True)
async def follows_cursors(context: CheckContext) -> str:
    tools = [tool(f"self.shelf.box_{number:02d}", _LONG) for number in range(_PAGED)]
    async with tooled(context, *tools) as device:
        await _settled(device)
        asked = [_cursor(request.body) for request in device.tools.find("tools/list")]
        # It may have begun twice, at the connection and at the hello.
        cursors = asked[len(asked) - asked[::-1].index("") - 1 :] if "" in asked else asked
        expected = _cursors(device, tools)
        require(cursors == expected, f"asked with the cursors {cursors} in place of {expected}")
        told = await ask(context, device)
        missing = [one.name for one in tools if not is_offered(one.name.removeprefix("self."), told.asked[0])]
        require(not missing, f"{len(missing)} of {len(tools)} tools are not offered, such as {missing[:1]}")
        return f"{len(cursors)} pages, {len(tools)} tools offered"


@GROUP.check("C3", "a tool list that never ends or breaks off is given up, and what was read is kept", steered=True)
async def bounds_lists(context: CheckContext) -> str:
    async with asyncio.TaskGroup() as group:
        endless = group.create_task(_endless(context), name="endless list")
        broken = group.create_task(_broken_off(context), name="broken list")
    return f"{endless.result()}; {broken.result()}"


@GROUP.check("C12", "answers whose session id is empty are taken", steered=True)
async def needs_no_session(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        if await device.tools.until("tools/list", 5.0):
            how = "the list was asked for before any hello, and its answer taken"
        else:
            await device.hello()
            device.session = ""
            require(
                await device.tools.until("tools/list", DISCOVERY_SECONDS), "an answer without session was not taken"
            )
            how = "the list was asked for after hello, and an answer without session taken"
    sent: list[ScriptedDevice] = []

    def reply(request: JsonObject) -> None:
        answer = mcp_server.answer(number_of(request), "found without a session")
        sent[0].send(f'{{"session_id":"","type":"mcp","payload":{answer}}}')

    async with tooled(context, tool("self.stage.find"), intercept={"self.stage.find": reply}) as device:
        sent.append(device)
        told = await ask(context, device, ("stage.find", {}))
        require("found without a session" in told.results[0], f"a call's answer was not taken: {told.results[0]}")
    return f"{how}; so was that of a call"


@GROUP.check("C13", "a device that connects again is asked again, and given the camera's address again")
async def begins_again(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        await discovered(device)
        first = _vision(device.tools.find("initialize")[-1].body)
        device.mqtt.drop()
        await asyncio.sleep(0.3)
        back = device.clock()
        if code := await device.connect():
            raise Failed(f"the broker refused the new connection with code {code}")
        if not await device.tools.until("initialize", 3.0, after=back):
            await device.hello()
        again = await device.tools.until("initialize", DISCOVERY_SECONDS, after=back)
        require(again, f"no initialize within {DISCOVERY_SECONDS:g} s of the new connection")
        await discovered(device, back)
        second = _vision(again[-1].body)
        require(bool(first) == bool(second), f"the camera's address was {first or 'none'} and then {second or 'none'}")
        return f"asked again after {span(again[0].at - back)}; camera's address: {second or 'none, as before'}"


async def _endless(context: CheckContext) -> str:
    wheel = tool("self.stage.turn_round")
    calls: dict[str, Intercept] = {
        "tools/list": lambda request: page(request, wheel, cursor="x"),
        wheel.name: saying("round"),
    }
    async with tooled(context, wheel, intercept=calls) as device:
        count = await _settled(device)
        require(count <= _MOST_REQUESTS, f"asked {count} times with a cursor that never changes, and goes on")
        told = await ask(context, device, ("stage.turn_round", {}))
        require(told.results == ["round"], f"the tool of an endless list: {told.results[0]}")
        return f"given up after {count} requests with the same cursor"


async def _broken_off(context: CheckContext) -> str:
    pillar = tool("self.stage.stand")

    def answer(request: JsonObject) -> str:
        if _cursor(request):
            return mcp_server.error(number_of(request), "Failed to add tool x because of payload size limit")
        return page(request, pillar, cursor="x")

    calls: dict[str, Intercept] = {"tools/list": answer, pillar.name: saying("standing")}
    async with tooled(context, pillar, intercept=calls) as device:
        count = await _settled(device)
        require(count <= _MOST_REQUESTS, f"asked {count} times for a page that is an error, and goes on")
        told = await ask(context, device, ("stage.stand", {}))
        require(told.results == ["standing"], f"the tool of the page before the error: {told.results[0]}")
        return f"first of two pages kept, offered: {', '.join(offered(told.asked[0]))}"


async def _settled(device: ScriptedDevice) -> int:
    """Wait until no further page is asked for, or too many were; return how many were."""
    count = 0
    while count < (found := len(device.tools.find("tools/list"))) <= _MOST_REQUESTS:
        count = found
        await device.tools.until("tools/list", 1.0, count + 1)
    return len(device.tools.find("tools/list"))


def _cursor(request: JsonObject) -> str:
    return text(member(request, "params"), "cursor") or ""


def _cursors(device: ScriptedDevice, tools: list[Tool]) -> list[str]:
    """Return the cursors that lead through the pages of a list."""
    server = mcp_server.McpServer(device.profile, tools, device.tools.board)
    cursors = [""]
    while True:
        params: JsonObject = {"cursor": cursors[-1]}
        answer = server.receive({"jsonrpc": "2.0", "id": len(cursors), "method": "tools/list", "params": params})
        following = text(member(json.loads(str(answer)), "result"), "nextCursor")
        if not following:
            return cursors
        cursors.append(following)


def _vision(request: JsonObject) -> str:
    capabilities = member(member(request, "params"), "capabilities")
    return str(item(member(capabilities, "vision"), "url") or "")
