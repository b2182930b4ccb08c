"""Group H: hello. What needs a conversation is in `hello_sessions`."""

import asyncio
import json
import re

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.messages import outbound, server_hello
from fleet.workbench.sim.messages.message import JsonObject

GROUP = Group("H", "hello")

_AT_ONCE = 1.0
_SOON = 3.0
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNUSED = 20.0
_PAUSE = 0.3
"""Seconds between goodbye and alert: the device's change to idle wipes what was shown before it."""


@GROUP.check("H1", "a hello is answered within a second, with every field as firmware needs it")
async def answers(stage: Stage) -> str:
    async with stage.probe() as probe:
        asked = probe.clock()
        hello = await probe.hello()
        answer = probe.mail.find("hello")[0]
        faults = [detail for _, detail in server_hello.check(answer.body)]
        require(not faults, ", ".join(faults))
        took = answer.at - asked
        late = probe.loop_lag.stalled_since(asked)
        require(took - late < _AT_ONCE, f"answered after {took:.2f} s, of which the suite was held up for {late:.2f} s")
        return f"answered in {span(took)}, audio at {hello.server}:{hello.port}"


@GROUP.check("H2", "a second hello gets another session, key and ssrc, and ends the first session")
async def begins_anew(stage: Stage) -> str:
    async with stage.probe() as probe:
        first, second = await probe.hello(), await probe.hello()
        require(first.session != second.session, f"session id {first.session} was given twice")
        require(first.key != second.key, "the same key was given twice")
        require(first.nonce[4:8] != second.nonce[4:8], f"the ssrc {first.nonce[4:8].hex()} was given twice")
        await probe.mail.refuse("goodbye", seconds=1.0)
        probe.send(outbound.listen_start(first.session, stage.profile.mode))
        told = await probe.mail.expect("goodbye", seconds=_SOON)
        require(told.session == first.session, f"a message of the first session was answered with {told}")
        return "all three differ; a message of the first session is answered with its goodbye"


@GROUP.check("H5", "a hello of another version, with less or with more in it, is accepted")
async def is_tolerant(stage: Stage) -> str:
    whole: JsonObject = json.loads(outbound.hello(stage.profile))
    smell: JsonObject = {"range": [1, 2]}
    variants: dict[str, JsonObject] = {
        "no features": {name: value for name, value in whole.items() if name != "features"},
        "version 1": {**whole, "version": 1},
        "no version": {name: value for name, value in whole.items() if name != "version"},
        "unknown fields": {**whole, "shoe_size": 43, "features": {"mcp": True, "smell": smell}},
    }
    async with stage.probe() as probe:
        slowest = max([await _accepted(probe, name, variant) for name, variant in variants.items()])
        return f"{', '.join(variants)}: answered within {span(slowest)}"


# Alone, because the refused device has one MAC, and so one connection.
@GROUP.check("H7", "a device that is turned away gets hello, goodbye, and an alert, within two seconds", alone=True)
async def turns_away(stage: Stage) -> str:
    if not stage.setup.refused:
        raise NotApplicable("it is not known which device the server turns away")
    async with stage.probe(mac=stage.setup.refused) as probe:
        asked = probe.clock()
        hello = await probe.hello()
        goodbye = await probe.mail.expect("goodbye", seconds=2.0, after=asked)
        alert = await probe.mail.expect("alert", seconds=2.0, after=asked)
        require(goodbye.session == hello.session, f"the goodbye has another session id: {goodbye}")
        pause, whole = alert.at - goodbye.at, alert.at - asked
        # A goodbye that was read late makes the pause look shorter than it was.
        require(
            pause + probe.loop_lag.stalled_since(asked) >= _PAUSE,
            f"the alert came {span(pause)} after the goodbye, which wipes it",
        )
        require(whole < 2.0, f"the alert came {span(whole)} after the hello")
        return f"alert {span(whole)} after the hello, {span(pause)} after the goodbye: {alert['message']}"


@GROUP.check("H8", "a session of which nothing comes ends within 20 seconds")
async def reaps_the_unused(stage: Stage) -> str:
    async with stage.probe() as probe:
        begun = probe.clock()
        hello = await probe.hello()
        if await probe.mail.until(lambda: bool(probe.mail.find("goodbye")), begun + _UNUSED - probe.clock()):
            told = probe.mail.find("goodbye")[0]
            require(told.session == hello.session, f"the goodbye has another session id: {told}")
            return f"goodbye after {span(told.at - begun)}"
        # It may also end without a word; then the device learns of it with its next message.
        probe.send(outbound.listen_start(hello.session, stage.profile.mode))
        known = not await probe.mail.until(lambda: bool(probe.mail.find("goodbye")), _SOON)
        require(not known, f"the session lives after {_UNUSED:g} s without a message or a packet")
        return f"ended without a word within {_UNUSED:g} s"


@GROUP.check("H9", "session ids are of letters, digits, `_` and `-`, at most 64 of them")
async def names_sessions(stage: Stage) -> str:
    async with stage.probe() as probe:
        ids = await _ids(probe, 5)
        wrong = [id_ for id_ in ids if not _SESSION.fullmatch(id_)]
        require(not wrong, f"session ids {', '.join(map(repr, wrong))}")
        require(len(set(ids)) == len(ids), "a session id was given twice")
        return f"such as {ids[0]}"


async def _accepted(probe: Probe, name: str, message: JsonObject) -> float:
    """Send a hello and return after how long it was answered in order."""
    asked = probe.clock()
    probe.send(message)
    answered = await probe.mail.until(lambda: bool(probe.mail.find("hello", after=asked)), _SOON)
    require(answered, f"a hello with {name} was not answered within {_SOON:g} s")
    answer = probe.mail.find("hello", after=asked)[0]
    faults = [detail for _, detail in server_hello.check(answer.body)]
    require(not faults, f"a hello with {name}: {', '.join(faults)}")
    return answer.at - asked


async def _ids(probe: Probe, count: int) -> list[str]:
    ids = []
    for _ in range(count):
        ids.append((await probe.hello()).session)
        await asyncio.sleep(0.05)
    return ids
