"""Group C, continued: calls of a device's tools, and all that may come back."""

import base64
import json
import random

from fleet.workbench.conformance.checks.mcp import GROUP
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.tool_use import (
    ask,
    is_failure,
    is_offered,
    number_of,
    saying,
    tool,
    tooled,
)
from fleet.workbench.conformance.verdict import require, span
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.tools import mcp_server

_PATIENCE = 45.0
"""Seconds in which a call that nothing answers must have timed out; 10 s are usual."""
_USER_ONLY = ("reboot", "get_system_info", "screen.get_info")
_CLUE = 40
"""Characters of base64 in a text for the model that show that it was given an image as text."""


@GROUP.check("C4", "a tool's error without a code reaches the model as text", steered=True)
async def tells_errors(context: CheckContext) -> str:
    words = "the lamp is broken"
    lamp = tool("self.stage.light")
    calls = {lamp.name: lambda request: mcp_server.error(number_of(request), words)}
    async with tooled(context, lamp, intercept=calls) as device:
        told = await ask(context, device, ("stage.light", {}))
        require(words in told.results[0], f"the model was told: {told.results[0]}")
        return f"the model was told: {told.results[0]}"


@GROUP.check("C5", "a tool's answer that is broken JSON ends in a time-out, and the session goes on", steered=True)
async def survives_broken_answers(context: CheckContext) -> str:
    lamp, bell = tool("self.stage.light"), tool("self.stage.ring")
    calls = {
        lamp.name: lambda request: mcp_server.error(number_of(request), 'no tool "light"\nhere'),
        bell.name: saying("ding"),
    }
    async with tooled(context, lamp, bell, intercept=calls) as device:
        told = await ask(context, device, ("stage.light", {}), seconds=_PATIENCE)
        sent = device.tools.find(lamp.name)[0].at
        then = await ask(context, device, ("stage.ring", {}))
        require("ding" in then.results[0], f"the next call in the session: {then.results[0]}")
        require(len(device.tools.find(lamp.name)) == 1, "the call was sent again")
        return f"after {span(told.asked[-1].at - sent)} the model was told: {told.results[0]}; the next call went well"


@GROUP.check("C6", "late, repeated and unknown answers change nothing", steered=True, seconds=90)
async def ignores_strays(context: CheckContext) -> str:
    first, silent, last = tool("self.stage.first"), tool("self.stage.silent"), tool("self.stage.last")
    late: list[int] = []
    devices: list[ScriptedDevice] = []

    def twice(request: JsonObject) -> str:
        for number, text in ((2**31 - 2, "unknown"), (number_of(request), "the right one")):
            _reply(devices[0], number, text)
        return mcp_server.answer(number_of(request), "the repeated one")

    calls = {first.name: twice, silent.name: lambda request: late.append(number_of(request)), last.name: saying("own")}
    async with tooled(context, first, silent, last, intercept=calls) as device:
        devices.append(device)
        told = (await ask(context, device, ("stage.first", {}))).results[0]
        require("the right one" in told and "repeated" not in told, f"of two answers the model was told: {told}")
        await ask(context, device, ("stage.silent", {}), seconds=_PATIENCE)
        for number in late:
            _reply(device, number, "the late one")
        then = await ask(context, device, ("stage.last", {}))
        require("own" in then.results[0], f"after a late answer the next call brought: {then.results[0]}")
        require("the late one" not in json.dumps(list(then.asked[-1].messages)), "the late answer reached the model")
        return "one answer each reached the model, the session went on"


@GROUP.check("C7", "a result that is an error, and images in both shapes, are taken", steered=True)
async def takes_all_results(context: CheckContext) -> str:
    picture = base64.b64encode(random.Random(7).randbytes(3000)).decode()
    standard: JsonObject = {"type": "image", "data": picture, "mimeType": "image/jpeg"}
    inner = json.dumps({"type": "image", "mimeType": "image/jpeg", "data": picture})
    failing, seeing, looking = tool("self.stage.fail"), tool("self.stage.see"), tool("self.stage.look")
    calls = {
        failing.name: lambda request: _result(request, {"type": "text", "text": "the drawer is stuck"}, failed=True),
        seeing.name: lambda request: _result(request, standard),
        looking.name: lambda request: _result(request, {"type": "image", "image": inner}),
    }
    async with tooled(context, failing, seeing, looking, intercept=calls) as device:
        told = await ask(context, device, ("stage.fail", {}), ("stage.see", {}), ("stage.look", {}))
        failure, *images = told.results
        require("the drawer is stuck" in failure, f"of a failure the model was told: {failure}")
        as_text = [one for one in images if picture[:_CLUE] in one]
        require(
            not as_text, f"an image was given to the model as {len(as_text[0] if as_text else '')} letters of base64"
        )
        timed_out = [one for one in images if is_failure(one)]
        require(not timed_out, f"of an image the model was told: {timed_out[:1]}")
        return f"the model was told: {failure!r}, and of the images {images[0]!r} and {images[1]!r}"


@GROUP.check("C8", "a number out of its range never reaches the device", steered=True)
async def checks_ranges(context: CheckContext) -> str:
    async with tooled(context) as device:
        wrong = ({"volume": 250}, {"volume": -1})
        told = await ask(context, device, *(("audio_speaker.set_volume", one) for one in wrong))
        sent = [call.arguments.get("volume") for call in device.tools.find("self.audio_speaker.set_volume")]
        bad = [value for value in sent if not isinstance(value, int) or not 0 <= value <= 100]
        require(not bad, f"the device was told to set its volume to {bad}")
        return f"clamped to {sent}" if sent else f"refused: {told.results[0]}"


@GROUP.check("C9", "tools that are for users only are neither offered to the model nor called for it", steered=True)
async def keeps_user_tools(context: CheckContext) -> str:
    async with tooled(context) as device:
        wanted = [spelling for name in _USER_ONLY for spelling in (f"self.{name}", name.replace(".", "_"))]
        told = await ask(context, device, *((name, {}) for name in wanted))
        shown = [name for name in _USER_ONLY for one in told.asked if is_offered(name, one)]
        require(not shown, f"offered: {', '.join(dict.fromkeys(shown))}")
        called = [name for name in _USER_ONLY if device.tools.find(f"self.{name}")]
        require(not called, f"called: {', '.join(called)}")
        return f"not offered, not called; the model was told: {told.results[0]}"


def _reply(device: ScriptedDevice, number: int, text: str) -> None:
    device.send(f'{{"session_id":"{device.session}","type":"mcp","payload":{mcp_server.answer(number, text)}}}')


def _result(request: JsonObject, entry: JsonObject, *, failed: bool = False) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number_of(request), "result": {"content": [entry], "isError": failed}})
