"""Group S: Dialogue and state. Who speaks when, and how each side interrupts the other."""

import asyncio
from collections.abc import Sequence

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import CheckContext, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import mentioned
from fleet.workbench.conformance.talk import (
    REPLY_SECONDS,
    ask,
    complete,
    finish,
    press,
    talking,
    understood,
    until_speaking,
)
from fleet.workbench.conformance.verdict import require
from fleet.workbench.sim.records.turns import Turn
from fleet.workbench.sim.scripted.microphone import silence
from fleet.workbench.sim.scripted.received import ReceivedMessage

GROUP = Group("S", "Dialogue and state")

AUTO = "P1 P2 P6 P7 P8 P9"
REALTIME = "P3 P4"
WOKEN = "P1 P3 P4 P6 P7 P9"
_SAID = 1.0
_ANSWER_SECONDS = 15.0
_STOP_SECONDS, _CROSSING = 0.3, 0.05


@GROUP.check(
    "S1", "an answer is `stt`, `tts start`, its sentences, `tts stop`, in this order", profiles=AUTO, steered=True
)
async def ordered(context: CheckContext) -> str:
    with context.monologue(4.0) as scene:
        async with talking(context) as scripted:
            since = scripted.clock()
            answer = await ask(scripted, voice.say(scene.mark, _SAID))
            understood(answer, scene)
            await asyncio.sleep(0.5)
            return judge_order([one for one in scripted.messages.all if one.at > since])


def judge_order(messages: Sequence[ReceivedMessage]) -> str:
    """One answer was framed as it must be; a `tts stop` before it means nothing to a device that does not speak.

    Raises:
        Failed: It was not.
    """
    names = [one.state or one.kind for one in messages if one.kind in ("stt", "tts")]
    while names[:1] == ["stop"]:
        names.pop(0)
    middle = names[2:-1]
    framed = names[:2] == ["stt", "start"] and names[-1:] == ["stop"]
    require(
        framed and middle and set(middle) <= {"sentence_start", "sentence_end"}, f"the order was {', '.join(names)}"
    )
    return f"stt, tts start, {middle.count('sentence_start')} × sentence_start, tts stop"


@GROUP.check("S2", "in manual mode the turn begins when the button is let go, not before", profiles="P5", steered=True)
async def manual(context: CheckContext) -> str:
    pause = 2.5
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as scripted:
            since = scripted.clock()
            await press(scripted)
            scripted.microphone.say(voice.say(scene.mark, _SAID) + silence(pause))
            await scripted.microphone.said()
            told = [*scripted.messages.find("stt", after=since), *scripted.messages.find("tts", after=since)]
            early = [one for one in told if one.state != "stop"]
            require(not early, f"before the button was let go came {early[0] if early else ''}")
            released = scripted.clock()
            scripted.release()
            answer = await answered(scripted, released)
            understood(answer, scene)
            took = answer.start.at - released
            return f"nothing in {pause:g} s of silence, `tts start` {took * 1000:.0f} ms after `listen stop`"


@GROUP.check("S3", "in realtime mode three turns need one `listen start`", profiles=REALTIME, steered=True)
async def realtime(context: CheckContext) -> str:
    turns: list[Turn] = []
    async with context.simulated_device() as device:
        require(await device.press(), "the device does not listen: its hello was not answered")
        for _ in range(3):
            with context.scene(reply_seconds=REPLY_SECONDS) as scene:
                turns.append(await device.say(voice.say(scene.mark, _SAID) + silence(0.5), _ANSWER_SECONDS))
                require(turns[-1].outcome == "answered", f"turn {len(turns)} ended as {turns[-1].outcome!r}")
                require(mentioned(turns[-1].transcript) == scene.mark, f"heard {turns[-1].transcript!r}")
            await asyncio.sleep(0.5)
        started = sum(step.name == "listening" for step in device.journal.steps)
        require(started == 1, f"the device said `listen start` {started} times")
    waits = ", ".join(f"{turn.latencies.get('first_audible', 0):.0f}" for turn in turns)
    return f"3 turns with one `listen start`; first sound {waits} ms after the speech"


@GROUP.check("S4", "a device that does not say `listen start` again is heard all the same", profiles=AUTO, steered=True)
async def unasked(context: CheckContext) -> str:
    async with talking(context) as scripted:
        scripted.relisten = False
        for _ in range(3):
            with context.scene(reply_seconds=REPLY_SECONDS) as scene:
                understood(await ask(scripted, voice.say(scene.mark, _SAID)), scene)
        return "3 turns with one `listen start`"


@GROUP.check(
    "S5", "an interruption is answered by one `tts stop` within 300 ms, and nothing of the answer", steered=True
)
async def aborted(context: CheckContext) -> str:
    with context.monologue(12.0) as scene:
        async with talking(context) as scripted:
            await until_speaking(scripted, scene)
            sent = scripted.clock()
            scripted.abort()
            stop = await scripted.messages.expect("tts", "stop", seconds=2.0, after=sent)
            took, late = stop.at - sent, scripted.loop_lag.stalled_since(sent)
            require(took <= _STOP_SECONDS + late, f"`tts stop` came after {took * 1000:.0f} ms")
            await asyncio.sleep(3.0)
            stops = scripted.messages.find("tts", "stop", after=sent)
            require(len(stops) == 1, f"{len(stops)} × `tts stop`")
            # A sentence may have been on its way when the interruption was sent.
            wrong = [
                one for one in scripted.messages.find("tts", after=stop.at) if one.state in ("start", "sentence_start")
            ]
            require(not wrong, f"after `tts stop` came {wrong[0] if wrong else ''}")
            # A datagram may be overtaken by `tts stop`; how soon audio has to end is D12's.
            audio = scripted.audio.since(stop.at + _CROSSING)
            require(not audio, f"{len(audio)} datagrams after `tts stop`")
            return f"one `tts stop` after {took * 1000:.0f} ms, nothing more in 3 s"


@GROUP.check("S6", "`abort` with `listen start` at once leads to a new turn", steered=True)
async def restarted(context: CheckContext) -> str:
    with context.monologue(12.0) as scene, context.scene(reply_seconds=REPLY_SECONDS) as after:
        async with talking(context) as scripted:
            await until_speaking(scripted, scene)
            sent = scripted.clock()
            scripted.abort("" if scripted.profile.mode == "manual" else "wake_word_detected")
            # Firmware listens already when `tts stop` comes; py-xiaozhi answers it with a further `listen start`.
            scripted.speaking = scripted.profile.name == "P8"
            scripted.listen()
            await asyncio.sleep(0.3)
            scripted.microphone.say(voice.say(after.mark, _SAID))
            await finish(scripted)
            answer = await answered(scripted, sent)
            understood(answer, after)
            stops = [one for one in scripted.messages.find("tts", "stop", after=sent) if one.at < answer.start.at]
            complete(context, after, _SAID)
            return f"the new turn was answered, after {len(stops)} × `tts stop`"


@GROUP.check("S7", "an interruption when nothing is spoken is tolerated", steered=True)
async def idle_abort(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as scripted:
            sent = scripted.clock()
            scripted.abort()
            await asyncio.sleep(0.5)
            stops = scripted.messages.find("tts", "stop", after=sent)
            understood(await ask(scripted, voice.say(scene.mark, _SAID)), scene)
            require(not scripted.messages.find("goodbye", after=sent), "the server said goodbye")
            return f"{len(stops)} × `tts stop`, and the next turn was answered"


@GROUP.check("S8", "`listen start` said again changes nothing: what was said is kept", steered=True)
async def repeated(context: CheckContext) -> str:
    said = 1.5
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as scripted:
            since = scripted.clock()
            await press(scripted)
            scripted.microphone.say(voice.say(scene.mark, said))
            for _ in range(2):
                await asyncio.sleep(0.5)
                scripted.listen()
            await finish(scripted)
            understood(await answered(scripted, since), scene)
            got = complete(context, scene, said)
            await asyncio.sleep(1.0)
            count = len(scripted.messages.find("stt", after=since))
            require(count == 1, f"{count} × `stt` for one utterance")
            return f"{got:.2f} of {said:g} s of speech heard across two further `listen start`"


@GROUP.check("S9", "a wake word gets a greeting or nothing, and what follows one answer", profiles=WOKEN, steered=True)
async def woken(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with context.scripted_device() as scripted:
            await scripted.hello()
            since = scripted.clock()
            scripted.detect("hi esp")
            scripted.listen()
            greeted = await scripted.messages.until(
                lambda: bool(scripted.messages.find("tts", "start", after=since)), 1.5
            )
            if greeted:
                await answered(scripted, since)
            asked = scripted.clock()
            understood(await ask(scripted, voice.say(scene.mark, _SAID)), scene)
            await asyncio.sleep(2.0)
            first = len([one for one in scripted.messages.find("tts", "start", after=since) if one.at < asked])
            second = len(scripted.messages.find("tts", "start", after=asked))
            require(first <= 1 and second == 1, f"{first} answers to the wake word, {second} to the command")
            return f"{'a greeting' if first else 'no greeting'}, then one answer"


@GROUP.check("S10", "a further wake word or press without a hello goes on in the same session", steered=True)
async def resumed(context: CheckContext) -> str:
    async with talking(context) as scripted:
        hello = scripted.session
        for turn in range(2):
            if turn and scripted.profile.wake_packets:
                scripted.detect("hi esp")
            if turn and scripted.profile.mode != "manual":
                scripted.listen()
                await asyncio.sleep(0.3)
            with context.scene(reply_seconds=REPLY_SECONDS) as scene:
                understood(await ask(scripted, voice.say(scene.mark, _SAID)), scene)
        sessions = {one.session for one in scripted.messages.all if one.kind in ("stt", "tts", "llm")}
        require(sessions <= {hello, ""}, f"messages of other sessions: {', '.join(sorted(sessions - {hello}))}")
        count = len(scripted.messages.find("hello"))
        require(count == 1, f"{count} server hellos")
        return f"2 turns in session {hello}"
