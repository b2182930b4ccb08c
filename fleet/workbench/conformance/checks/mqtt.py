"""Group M: MQTT. What happens when a connection is lost is in `mqtt_loss`, many devices at once in `mqtt_storm`."""

import asyncio
import json
from dataclasses import replace

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.verdict import Failed, NotApplicable, require, span
from fleet.workbench.sim.bootstrap import request
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.scripted.device import ScriptedDevice

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
async def needs_no_subscription(context: CheckContext) -> str:
    async with context.scripted_device(connect=False) as device:
        await _join(device, subscribe=False)
        return f"answered in {span(await _greet(device))}"


@GROUP.check("M2", "a device that does subscribe gets each message once")
async def delivers_once(context: CheckContext) -> str:
    async with context.scripted_device(connect=False) as device:
        topic = request.reply_topic(await device.boot(), device.mac)
        if not topic:
            raise NotApplicable("bootstrap does not tell the topic of the server's messages")
        await _join(device, subscribe=False)
        granted = await device.mqtt.subscribe(topic)
        await _greet(device)
        await asyncio.sleep(1.5)
        raw = [message.raw for message in device.messages.all]
        # Who asks anew for the tools says `initialized` anew, and that message has no number.
        anew = sum(_INITIALIZE in message for message in raw)
        twice = sorted({one for one in raw if raw.count(one) > (anew if _INITIALIZED in one else 1)})
        require(not twice, f"{len(twice)} of {len(raw)} messages came twice, such as {twice[:1]!r}")
        return f"{len(raw)} messages, each once; the subscription was {_granted(granted)}"


@GROUP.check("M3", "a wrong password and another device's client id are refused")
async def refuses_strangers(context: CheckContext) -> str:
    async with context.scripted_device(connect=False) as device, context.scripted_device(connect=False) as other:
        own, foreign = await device.boot(), await other.boot()
        first = "A" if own.password[:1] != "A" else "B"
        wrong = {
            "a wrong password": replace(own, password=first + own.password[1:]),
            "another device's client id": replace(own, client_id=foreign.client_id),
        }
        codes = []
        for what, access in wrong.items():
            device.access = access
            code = await device.connect(subscribe=False)
            require(code in _REFUSALS, f"{what}: CONNACK {code} in place of {_REFUSALS[0]} or {_REFUSALS[1]}")
            codes.append(code)
        return f"CONNACK {' and '.join(map(str, codes))}"


@GROUP.check("M4", "a second connection of the same device takes the place of the first")
async def takes_over(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        first, begun = device.mqtt, device.clock()
        await _join(device)
        require(await _closed(first.closed, 5.0), "the first connection is still open 5 s after the second began")
        gone = device.clock() - begun
        await _greet(device)
        # A second answer would come within this time.
        await asyncio.sleep(0.5)
        hellos = len(device.messages.find("hello"))
        require(device.mqtt.up, "the second connection was closed too")
        require(hellos == 1, f"one hello was answered {hellos} times")
        return f"first closed after {span(gone)}, second served"


@GROUP.check("M5", "a device that only pings stays connected")
async def keeps_the_quiet(context: CheckContext) -> str:
    keepalive, stay = 4, 20.0
    async with context.scripted_device(connect=False) as device:
        await _join(device, keepalive=keepalive)
        early = await _closed(device.mqtt.closed, stay)
        require(not early, "the connection was closed although the device pinged in time")
        pongs = device.mqtt.pongs
        require(pongs >= stay / keepalive, f"only {pongs} answers to pings in {stay:g} s")
        await _greet(device)
        return f"up for {stay:g} s at keep-alive {keepalive} s, {pongs} pings answered"


@GROUP.check("M7", "what a device publishes to another one's topic has no effect there")
async def keeps_topics_apart(context: CheckContext) -> str:
    async with context.scripted_device() as device, context.scripted_device() as victim:
        own, foreign = device.access, victim.access
        if own is None or foreign is None or own.publish_topic == foreign.publish_topic:
            raise NotApplicable("all devices publish to the same topic, and are told apart by their connections")
        device.send(outbound.hello(context.profile), topic=foreign.publish_topic)
        await victim.messages.expect_none("hello", seconds=2.0)
        require(not device.messages.find("hello"), "a hello to another device's topic was answered to its sender")
        await _greet(victim)
        return "ignored" if device.mqtt.up else "ignored, and its sender disconnected"


@GROUP.check("M8", "a message of 60 KB is accepted")
async def takes_large_messages(context: CheckContext) -> str:
    size = 60 * 1024
    frame = '{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":2147483000,"result":{"text":"%s"}}}'
    async with context.scripted_device() as device:
        device.send(frame % ("x" * (size - len(frame) + 2)))
        took = await _greet(device)
        require(not device.mqtt.closed.is_set(), "the connection was closed")
        return f"{size} bytes taken, hello answered {span(took)} later"


@GROUP.check("M9", "what is no message is ignored and the connection kept")
async def survives_junk(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        for payload in _JUNK:
            device.send(payload)
        took = await _greet(device)
        require(not device.mqtt.closed.is_set(), "the connection was closed")
        hellos = len(device.messages.find("hello"))
        require(hellos == 1, f"one hello and {len(_JUNK)} broken messages were answered with {hellos} hellos")
        return f"{len(_JUNK)} broken messages ignored, hello answered in {span(took)}"


async def _join(device: ScriptedDevice, *, keepalive: int | None = None, subscribe: bool | None = None) -> None:
    if code := await device.connect(keepalive=keepalive, subscribe=subscribe):
        raise Failed(f"the broker refused the connection with code {code}")


async def _greet(device: ScriptedDevice) -> float:
    """Say hello and return after how long it was answered."""
    asked = device.clock()
    await device.hello()
    return device.messages.find("hello", after=asked)[0].at - asked


async def _closed(closed: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await closed.wait()
    except TimeoutError:
        return False
    return True


def _granted(codes: bytes) -> str:
    return "refused" if 0x80 in codes else f"granted with QoS {json.dumps(list(codes))[1:-1]}"
