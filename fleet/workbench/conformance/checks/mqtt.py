"""Group M: MQTT. What happens when a connection is lost is in `mqtt_loss`, many devices at once in `mqtt_herd`."""

import asyncio
import json
from dataclasses import replace

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.probe import bootstrap
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage
from fleet.workbench.conformance.verdict import Failed, NotApplicable, require, span
from fleet.workbench.sim.messages import outbound

GROUP = Group("M", "MQTT")

_REFUSALS = (4, 5)
_INITIALIZE, _INITIALIZED = b'"initialize"', b'"notifications/initialized"'
_JUNK = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"hello"',
    b"{}",
    b'{"type":7}',
    b'{"type":null}',
    b'{"type":["hello"]}',
    b'{"type":"hello"',
    b'{"type":"no such type"}',
    b"\xff\xfe\x00hello",
    b"[" * 3000,
    b'{"type":"listen","state":{"start":1},"session_id":[]}',
    b'{"type":"mcp","payload":"text"}',
)


@GROUP.check("M1", "a device that never subscribes is answered all the same")
async def needs_no_subscription(stage: Stage) -> str:
    async with stage.probe(connect=False) as probe:
        await _join(probe, subscribe=False)
        return f"answered in {span(await _greet(probe))}"


@GROUP.check("M2", "a device that does subscribe gets each message once")
async def delivers_once(stage: Stage) -> str:
    async with stage.probe(connect=False) as probe:
        topic = bootstrap.reply_topic(await probe.boot(), probe.mac)
        if not topic:
            raise NotApplicable("bootstrap does not tell the topic of the server's messages")
        await _join(probe, subscribe=False)
        granted = await probe.line.subscribe(topic)
        await _greet(probe)
        await asyncio.sleep(1.5)
        raw = [message.raw for message in probe.mail.messages]
        # Who asks anew for the tools says `initialized` anew, and that message has no number.
        anew = sum(_INITIALIZE in message for message in raw)
        twice = sorted({one for one in raw if raw.count(one) > (anew if _INITIALIZED in one else 1)})
        require(not twice, f"{len(twice)} of {len(raw)} messages came twice, such as {twice[:1]!r}")
        return f"{len(raw)} messages, each once; the subscription was {_granted(granted)}"


@GROUP.check("M3", "a wrong password and another device's client id are refused")
async def refuses_strangers(stage: Stage) -> str:
    async with stage.probe(connect=False) as probe, stage.probe(connect=False) as other:
        own, foreign = await probe.boot(), await other.boot()
        first = "A" if own.password[:1] != "A" else "B"
        wrong = {
            "a wrong password": replace(own, password=first + own.password[1:]),
            "another device's client id": replace(own, client_id=foreign.client_id),
        }
        codes = []
        for what, access in wrong.items():
            probe.access = access
            code = await probe.connect(subscribe=False)
            require(code in _REFUSALS, f"{what}: CONNACK {code} in place of {_REFUSALS[0]} or {_REFUSALS[1]}")
            codes.append(code)
        return f"CONNACK {' and '.join(map(str, codes))}"


@GROUP.check("M4", "a second connection of the same device takes the place of the first")
async def takes_over(stage: Stage) -> str:
    async with stage.probe() as probe:
        first, begun = probe.line, probe.clock()
        await _join(probe)
        require(await _closed(first.closed, 5.0), "the first connection is still open 5 s after the second began")
        gone = probe.clock() - begun
        await _greet(probe)
        # Whatever is sent a second time comes within this.
        await asyncio.sleep(0.5)
        hellos = len(probe.mail.find("hello"))
        require(probe.line.up, "the second connection was closed too")
        require(hellos == 1, f"one hello was answered {hellos} times")
        return f"first closed after {span(gone)}, second served"


@GROUP.check("M5", "a device that only pings stays connected")
async def keeps_the_quiet(stage: Stage) -> str:
    keepalive, stay = 4, 20.0
    async with stage.probe(connect=False) as probe:
        await _join(probe, keepalive=keepalive)
        early = await _closed(probe.line.closed, stay)
        require(not early, "the connection was closed although the device pinged in time")
        pongs = probe.line.pongs
        require(pongs >= stay / keepalive, f"only {pongs} answers to pings in {stay:g} s")
        await _greet(probe)
        return f"up for {stay:g} s at keep-alive {keepalive} s, {pongs} pings answered"


@GROUP.check("M7", "what a device publishes to another one's topic has no effect there")
async def keeps_topics_apart(stage: Stage) -> str:
    async with stage.probe() as probe, stage.probe() as victim:
        own, foreign = probe.access, victim.access
        if own is None or foreign is None or own.publish_topic == foreign.publish_topic:
            raise NotApplicable("all devices publish to the same topic, and are told apart by their connections")
        probe.send(outbound.hello(stage.profile), topic=foreign.publish_topic)
        await victim.mail.refuse("hello", seconds=2.0)
        require(not probe.mail.find("hello"), "a hello to another device's topic was answered to its sender")
        await _greet(victim)
        return "ignored" if probe.line.up else "ignored, and its sender disconnected"


@GROUP.check("M8", "a message of 60 KB is accepted")
async def takes_large_messages(stage: Stage) -> str:
    size = 60 * 1024
    frame = '{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":2147483000,"result":{"text":"%s"}}}'
    async with stage.probe() as probe:
        probe.send(frame % ("x" * (size - len(frame) + 2)))
        took = await _greet(probe)
        require(not probe.line.closed.is_set(), "the connection was closed")
        return f"{size} bytes taken, hello answered {span(took)} later"


@GROUP.check("M9", "what is no message is ignored and the connection kept")
async def survives_junk(stage: Stage) -> str:
    async with stage.probe() as probe:
        for payload in _JUNK:
            probe.send(payload)
        took = await _greet(probe)
        require(not probe.line.closed.is_set(), "the connection was closed")
        hellos = len(probe.mail.find("hello"))
        require(hellos == 1, f"one hello and {len(_JUNK)} broken messages were answered with {hellos} hellos")
        return f"{len(_JUNK)} broken messages ignored, hello answered in {span(took)}"


async def _join(probe: Probe, *, keepalive: int | None = None, subscribe: bool | None = None) -> None:
    if code := await probe.connect(keepalive=keepalive, subscribe=subscribe):
        raise Failed(f"the broker refused the connection with code {code}")


async def _greet(probe: Probe) -> float:
    """Say hello and return after how long it was answered."""
    asked = probe.clock()
    await probe.hello()
    return probe.mail.find("hello", after=asked)[0].at - asked


async def _closed(closed: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await closed.wait()
    except TimeoutError:
        return False
    return True


def _granted(codes: bytes) -> str:
    return "refused" if 0x80 in codes else f"granted with QoS {json.dumps(list(codes))[1:-1]}"
