"""Group H: hello. What needs a conversation is in `hello_sessions`."""

import asyncio
import json
import re

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.messages import outbound, server_hello
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.scripted.device import ScriptedDevice

GROUP = Group("H", "hello")

_AT_ONCE = 1.0
_SOON = 3.0
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNUSED = 20.0
_PAUSE = 0.3
"""Seconds between goodbye and alert: the device's change to idle wipes what was shown before it."""


@GROUP.check("H1", "a hello is answered within a second, with every field as firmware needs it")
async def answers(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        asked = device.clock()
        hello = await device.hello()
        answer = device.messages.find("hello")[0]
        faults = [detail for _, detail in server_hello.check(answer.body)]
        require(not faults, ", ".join(faults))
        took = answer.at - asked
        late = device.loop_lag.stalled_since(asked)
        require(took - late < _AT_ONCE, f"answered after {took:.2f} s, of which the suite was held up for {late:.2f} s")
        return f"answered in {span(took)}, audio at {hello.server}:{hello.port}"


@GROUP.check("H2", "a second hello gets another session, key and ssrc, and ends the first session")
async def begins_anew(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        first, second = await device.hello(), await device.hello()
        require(first.session != second.session, f"session id {first.session} was given twice")
        require(first.key != second.key, "the same key was given twice")
        require(first.nonce[4:8] != second.nonce[4:8], f"the ssrc {first.nonce[4:8].hex()} was given twice")
        await device.messages.expect_none("goodbye", seconds=1.0)
        device.send(outbound.listen_start(first.session, context.profile.mode))
        told = await device.messages.expect("goodbye", seconds=_SOON)
        require(told.session == first.session, f"a message of the first session was answered with {told}")
        return "all three differ; a message of the first session is answered with its goodbye"


@GROUP.check("H5", "a hello of another version, with less or with more in it, is accepted")
async def is_tolerant(context: CheckContext) -> str:
    whole: JsonObject = json.loads(outbound.hello(context.profile))
    smell: JsonObject = {"range": [1, 2]}
    variants: dict[str, JsonObject] = {
        "no features": {name: value for name, value in whole.items() if name != "features"},
        "version 1": {**whole, "version": 1},
        "no version": {name: value for name, value in whole.items() if name != "version"},
        "unknown fields": {**whole, "shoe_size": 43, "features": {"mcp": True, "smell": smell}},
    }
    async with context.scripted_device() as device:
        slowest = max([await _accepted(device, name, variant) for name, variant in variants.items()])
        return f"{', '.join(variants)}: answered within {span(slowest)}"


# Alone, because the refused device has one MAC, and so one connection.
@GROUP.check("H7", "a device that is turned away gets hello, goodbye, and an alert, within two seconds", alone=True)
async def turns_away(context: CheckContext) -> str:
    if not context.setup.refused:
        raise NotApplicable("it is not known which device the server turns away")
    async with context.scripted_device(mac=context.setup.refused) as device:
        asked = device.clock()
        hello = await device.hello()
        goodbye = await device.messages.expect("goodbye", seconds=2.0, after=asked)
        alert = await device.messages.expect("alert", seconds=2.0, after=asked)
        require(goodbye.session == hello.session, f"the goodbye has another session id: {goodbye}")
        pause, whole = alert.at - goodbye.at, alert.at - asked
        # A goodbye that was read late makes the pause look shorter than it was.
        require(
            pause + device.loop_lag.stalled_since(asked) >= _PAUSE,
            f"the alert came {span(pause)} after the goodbye, which wipes it",
        )
        require(whole < 2.0, f"the alert came {span(whole)} after the hello")
        return f"alert {span(whole)} after the hello, {span(pause)} after the goodbye: {alert['message']}"


@GROUP.check("H8", "a session of which nothing comes ends within 20 seconds")
async def reaps_the_unused(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        begun = device.clock()
        hello = await device.hello()
        if await device.messages.until(lambda: bool(device.messages.find("goodbye")), begun + _UNUSED - device.clock()):
            told = device.messages.find("goodbye")[0]
            require(told.session == hello.session, f"the goodbye has another session id: {told}")
            return f"goodbye after {span(told.at - begun)}"
        # It may also end without a word; then the device learns of it with its next message.
        device.send(outbound.listen_start(hello.session, context.profile.mode))
        known = not await device.messages.until(lambda: bool(device.messages.find("goodbye")), _SOON)
        require(not known, f"the session lives after {_UNUSED:g} s without a message or a packet")
        return f"ended without a word within {_UNUSED:g} s"


@GROUP.check("H9", "session ids are of letters, digits, `_` and `-`, at most 64 of them")
async def names_sessions(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        ids = await _ids(device, 5)
        wrong = [id_ for id_ in ids if not _SESSION.fullmatch(id_)]
        require(not wrong, f"session ids {', '.join(map(repr, wrong))}")
        require(len(set(ids)) == len(ids), "a session id was given twice")
        return f"such as {ids[0]}"


async def _accepted(device: ScriptedDevice, name: str, message: JsonObject) -> float:
    """Send a hello and return after how long it was answered in order."""
    asked = device.clock()
    device.send(message)
    answered = await device.messages.until(lambda: bool(device.messages.find("hello", after=asked)), _SOON)
    require(answered, f"a hello with {name} was not answered within {_SOON:g} s")
    answer = device.messages.find("hello", after=asked)[0]
    faults = [detail for _, detail in server_hello.check(answer.body)]
    require(not faults, f"a hello with {name}: {', '.join(faults)}")
    return answer.at - asked


async def _ids(device: ScriptedDevice, count: int) -> list[str]:
    ids = []
    for _ in range(count):
        ids.append((await device.hello()).session)
        await asyncio.sleep(0.05)
    return ids
