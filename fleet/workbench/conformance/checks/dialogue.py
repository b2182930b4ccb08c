"""Group S: Dialogue and state. Who speaks when, and how each side interrupts the other."""

import asyncio
from collections.abc import Sequence

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.probe.mail import Message
from fleet.workbench.conformance.probe.microphone import silence
from fleet.workbench.conformance.stage import Stage, answered
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
async def ordered(stage: Stage) -> str:
    with stage.monologue(4.0) as scene:
        async with talking(stage) as probe:
            since = probe.clock()
            answer = await ask(probe, voice.say(scene.mark, _SAID))
            understood(answer, scene)
            await asyncio.sleep(0.5)
            return judge_order([one for one in probe.mail.messages if one.at > since])


def judge_order(messages: Sequence[Message]) -> str:
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
async def manual(stage: Stage) -> str:
    pause = 2.5
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            probe.microphone.say(voice.say(scene.mark, _SAID) + silence(pause))
            await probe.microphone.said()
            told = [*probe.mail.find("stt", after=since), *probe.mail.find("tts", after=since)]
            early = [one for one in told if one.state != "stop"]
            require(not early, f"before the button was let go came {early[0] if early else ''}")
            released = probe.clock()
            probe.release()
            answer = await answered(probe, released)
            understood(answer, scene)
            took = answer.start.at - released
            return f"nothing in {pause:g} s of silence, `tts start` {took * 1000:.0f} ms after `listen stop`"


@GROUP.check("S3", "in realtime mode three turns need one `listen start`", profiles=REALTIME, steered=True)
async def realtime(stage: Stage) -> str:
    turns: list[Turn] = []
    async with stage.device() as device:
        require(await device.press(), "the device does not listen: its hello was not answered")
        for _ in range(3):
            with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
                turns.append(await device.say(voice.say(scene.mark, _SAID) + silence(0.5), _ANSWER_SECONDS))
                require(turns[-1].outcome == "answered", f"turn {len(turns)} ended as {turns[-1].outcome!r}")
                require(mentioned(turns[-1].transcript) == scene.mark, f"heard {turns[-1].transcript!r}")
            await asyncio.sleep(0.5)
        started = sum(step.name == "listening" for step in device.journal.steps)
        require(started == 1, f"the device said `listen start` {started} times")
    waits = ", ".join(f"{turn.latencies.get('first_audible', 0):.0f}" for turn in turns)
    return f"3 turns with one `listen start`; first sound {waits} ms after the speech"


@GROUP.check("S4", "a device that does not say `listen start` again is heard all the same", profiles=AUTO, steered=True)
async def unasked(stage: Stage) -> str:
    async with talking(stage) as probe:
        probe.relisten = False
        for _ in range(3):
            with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
                understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
        return "3 turns with one `listen start`"


@GROUP.check(
    "S5", "an interruption is answered by one `tts stop` within 300 ms, and nothing of the answer", steered=True
)
async def aborted(stage: Stage) -> str:
    with stage.monologue(12.0) as scene:
        async with talking(stage) as probe:
            await until_speaking(probe, scene)
            sent = probe.clock()
            probe.abort()
            stop = await probe.mail.expect("tts", "stop", seconds=2.0, after=sent)
            took, late = stop.at - sent, probe.loop_lag.stalled_since(sent)
            require(took <= _STOP_SECONDS + late, f"`tts stop` came after {took * 1000:.0f} ms")
            await asyncio.sleep(3.0)
            stops = probe.mail.find("tts", "stop", after=sent)
            require(len(stops) == 1, f"{len(stops)} × `tts stop`")
            # A sentence may have been on its way when the interruption was sent.
            wrong = [one for one in probe.mail.find("tts", after=stop.at) if one.state in ("start", "sentence_start")]
            require(not wrong, f"after `tts stop` came {wrong[0] if wrong else ''}")
            # A datagram may be overtaken by `tts stop`; how soon audio has to end is D12's.
            audio = probe.audio.since(stop.at + _CROSSING)
            require(not audio, f"{len(audio)} datagrams after `tts stop`")
            return f"one `tts stop` after {took * 1000:.0f} ms, nothing more in 3 s"


@GROUP.check("S6", "`abort` with `listen start` at once leads to a new turn", steered=True)
async def restarted(stage: Stage) -> str:
    with stage.monologue(12.0) as scene, stage.scene(reply_seconds=REPLY_SECONDS) as after:
        async with talking(stage) as probe:
            await until_speaking(probe, scene)
            sent = probe.clock()
            probe.abort("" if probe.profile.mode == "manual" else "wake_word_detected")
            # Firmware listens already when `tts stop` comes; py-xiaozhi answers it with a further `listen start`.
            probe.speaking = probe.profile.name == "P8"
            probe.listen()
            await asyncio.sleep(0.3)
            probe.microphone.say(voice.say(after.mark, _SAID))
            await finish(probe)
            answer = await answered(probe, sent)
            understood(answer, after)
            stops = [one for one in probe.mail.find("tts", "stop", after=sent) if one.at < answer.start.at]
            complete(stage, after, _SAID)
            return f"the new turn was answered, after {len(stops)} × `tts stop`"


@GROUP.check("S7", "an interruption when nothing is spoken is tolerated", steered=True)
async def idle_abort(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            sent = probe.clock()
            probe.abort()
            await asyncio.sleep(0.5)
            stops = probe.mail.find("tts", "stop", after=sent)
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            require(not probe.mail.find("goodbye", after=sent), "the server said goodbye")
            return f"{len(stops)} × `tts stop`, and the next turn was answered"


@GROUP.check("S8", "`listen start` said again changes nothing: what was said is kept", steered=True)
async def repeated(stage: Stage) -> str:
    said = 1.5
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            probe.microphone.say(voice.say(scene.mark, said))
            for _ in range(2):
                await asyncio.sleep(0.5)
                probe.listen()
            await finish(probe)
            understood(await answered(probe, since), scene)
            got = complete(stage, scene, said)
            await asyncio.sleep(1.0)
            count = len(probe.mail.find("stt", after=since))
            require(count == 1, f"{count} × `stt` for one utterance")
            return f"{got:.2f} of {said:g} s of speech heard across two further `listen start`"


@GROUP.check("S9", "a wake word gets a greeting or nothing, and what follows one answer", profiles=WOKEN, steered=True)
async def woken(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with stage.probe() as probe:
            await probe.hello()
            since = probe.clock()
            probe.detect("hi esp")
            probe.listen()
            greeted = await probe.mail.until(lambda: bool(probe.mail.find("tts", "start", after=since)), 1.5)
            if greeted:
                await answered(probe, since)
            asked = probe.clock()
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            await asyncio.sleep(2.0)
            first = len([one for one in probe.mail.find("tts", "start", after=since) if one.at < asked])
            second = len(probe.mail.find("tts", "start", after=asked))
            require(first <= 1 and second == 1, f"{first} answers to the wake word, {second} to the command")
            return f"{'a greeting' if first else 'no greeting'}, then one answer"


@GROUP.check("S10", "a further wake word or press without a hello goes on in the same session", steered=True)
async def resumed(stage: Stage) -> str:
    async with talking(stage) as probe:
        hello = probe.session
        for turn in range(2):
            if turn and probe.profile.wake_packets:
                probe.detect("hi esp")
            if turn and probe.profile.mode != "manual":
                probe.listen()
                await asyncio.sleep(0.3)
            with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
                understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
        sessions = {one.session for one in probe.mail.messages if one.kind in ("stt", "tts", "llm")}
        require(sessions <= {hello, ""}, f"messages of other sessions: {', '.join(sorted(sessions - {hello}))}")
        count = len(probe.mail.find("hello"))
        require(count == 1, f"{count} server hellos")
        return f"2 turns in session {hello}"
