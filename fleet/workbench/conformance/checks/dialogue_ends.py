"""Group S, continued: how sessions end, and what happens to unknown ones."""

import asyncio

from fleet.workbench.conformance.checks.dialogue import GROUP
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.judge import play
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, press, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import NotApplicable, require
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.received import ReceivedMessage

UNKNOWN = "no-such-session"
_SAID = 1.0
_CUT_SECONDS = 0.3
_GRACE = 0.3
_EARLY, _LATE = 3.0, 10.0
_SILENT_LIMIT = 120.0


@GROUP.check("S11", "a message of an unknown session is answered with a goodbye that names it", steered=True)
async def unknown(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with context.scripted_device() as device:
            first = await _say_unknown(device, f"{UNKNOWN}-1")
            await device.hello()
            second = await _say_unknown(device, f"{UNKNOWN}-2")
            if device.profile.mode != "manual":
                device.listen()
                await asyncio.sleep(0.3)
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            live = [one for one in device.messages.find("goodbye") if one.session == device.session]
            require(not live, "the live session got a goodbye too")
            return f"goodbye after {first * 1000:.0f} ms, and after {second * 1000:.0f} ms beside a live session"


async def _say_unknown(device: ScriptedDevice, session: str) -> float:
    sent = device.clock()
    device.send({"session_id": session, "type": "listen", "state": "start", "mode": device.profile.mode})
    goodbye = await device.messages.expect("goodbye", seconds=3.0, after=sent)
    require(goodbye.session == session, f"the goodbye names {goodbye.session!r} instead of {session!r}")
    return goodbye.at - sent


@GROUP.check("S12", "a goodbye of an unknown session is not answered")
async def unanswered(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        for session in (UNKNOWN, ""):
            sent = device.clock()
            device.goodbye(session)
            await device.messages.expect_none("goodbye", seconds=1.5, after=sent)
        await device.hello()
        sent = device.clock()
        device.goodbye(UNKNOWN)
        await device.messages.expect_none("goodbye", seconds=1.5, after=sent)
        return "no answer without a session, nor beside a live one"


@GROUP.check("S13", "the device's goodbye in mid-answer ends all of it", steered=True)
async def hung_up(context: CheckContext) -> str:
    text = " ".join(f"This is sentence {number} of many in scene {{mark}}." for number in range(1, 11))
    with context.scene(rounds=(Round(text, pace=0.15),), reply_seconds=20.0) as scene:
        async with talking(context) as device:
            await until_speaking(device, scene)
            device.microphone.on = False
            sent = device.clock()
            device.goodbye()
            await asyncio.sleep(1.0)
            sentences = len(context.steering.spoken(scene.mark))
            await asyncio.sleep(3.0)
            since = sent + _CUT_SECONDS + device.loop_lag.stalled_since(sent)
            audio = device.audio.since(since)
            require(not audio, f"{len(audio)} datagrams later than {_CUT_SECONDS * 1000:.0f} ms after the goodbye")
            wrong = [one for one in device.messages.find("tts", after=since) if one.state != "stop"]
            require(not wrong, f"after the goodbye came {wrong[0] if wrong else ''}")
            require(not device.messages.find("goodbye", after=sent), "the goodbye was answered with one")
            more = len(context.steering.spoken(scene.mark)) - sentences
            require(not more, f"the voice was asked for {more} further sentences")
            last = device.audio.datagrams[-1].at - sent
            return f"last datagram {max(0.0, last) * 1000:.0f} ms after the goodbye, nothing more in 4 s"


@GROUP.check(
    "S14", "the server's goodbye names the live session, and comes after the last sound", steered=True, seconds=150
)
async def farewell(context: CheckContext) -> str:
    idle = _idle_seconds(context)
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID))
            goodbye = await _goodbye(device, answer.stop.at, idle)
            since = goodbye.at - play(device.audio.datagrams).ended
            require(since >= _GRACE, f"the goodbye came {since:.2f} s after the last sound")
            return f"goodbye {since:.1f} s after the last sound"


@GROUP.check("S15", "a device that only listens to silence gets a goodbye before 120 s", seconds=150)
async def left_alone(context: CheckContext) -> str:
    idle = _idle_seconds(context)
    async with talking(context) as device:
        await press(device)
        began = device.clock()
        goodbye = await _goodbye(device, began, idle)
        return f"goodbye after {goodbye.at - began:.1f} s of silence, {idle:g} s are set"


def _idle_seconds(context: CheckContext) -> float:
    idle = context.setup.idle_seconds
    if idle is None:
        raise NotApplicable("after how much silence the server says goodbye is not known: --idle-seconds")
    if idle + _LATE > _SILENT_LIMIT:
        raise NotApplicable(f"{idle:g} s of silence are too long to wait for")
    return idle


async def _goodbye(device: ScriptedDevice, since: float, idle: float) -> ReceivedMessage:
    goodbye = await device.messages.expect("goodbye", seconds=idle + _LATE, after=since)
    require(goodbye.session == device.session, f"the goodbye names {goodbye.session!r} instead of {device.session!r}")
    after = goodbye.at - since
    require(after >= idle - _EARLY, f"the goodbye came after {after:.1f} s already, {idle:g} s are set")
    return goodbye


@GROUP.check("S22", "the face of an answer (`llm`) comes behind its `tts start`", steered=True)
async def faced(context: CheckContext) -> str:
    with (
        context.scene(rounds=(Round("😊 Scene {mark} is a happy one."),), reply_seconds=REPLY_SECONDS) as first,
        context.scene(rounds=(Round("😢 Scene {mark} is a sad one."),), reply_seconds=REPLY_SECONDS) as second,
    ):
        async with talking(context) as device:
            faces: list[str] = []
            for scene in (first, second):
                since = device.clock()
                answer = await ask(device, voice.say(scene.mark, _SAID))
                told = [one for one in device.messages.find("llm", after=since) if one.at <= answer.stop.at]
                early = [one for one in told if one.at < answer.start.at]
                require(not early, "`llm` came before `tts start`: the state before may wipe the face")
                faces += [str(one["emotion"]) for one in told]
            if not faces:
                return "no face"
            return f"{', '.join(faces)}, each behind `tts start`"


@GROUP.check("S23", "a session that the server ended is not ended twice", seconds=60)
async def ended_once(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        since = device.clock()
        goodbye = await device.messages.expect("goodbye", seconds=25.0, after=since)
        # So firmware in auto mode answers the `tts stop` that came just before the goodbye.
        device.send({"session_id": goodbye.session, "type": "listen", "state": "start", "mode": "auto"})
        await device.messages.expect_none("goodbye", seconds=1.5, after=goodbye.at)
        await device.hello()
        return f"one goodbye {goodbye.at - since:.1f} s after an unused hello, though `listen start` followed it"
