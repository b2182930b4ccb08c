"""Group U, continued: how speech gets through whatever happens to its packets."""

import asyncio
from collections.abc import Callable

from fleet.workbench.conformance.checks.uplink import GROUP
from fleet.workbench.conformance.probe.microphone import silence
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.records import HeardAudio
from fleet.workbench.conformance.steering.script import Scene
from fleet.workbench.conformance.talk import (
    REPLY_SECONDS,
    WARM_UP,
    ask,
    complete,
    finish,
    heard,
    length,
    press,
    span,
    talking,
    twice,
    understood,
)
from fleet.workbench.conformance.verdict import NotApplicable, require
from fleet.workbench.sim.audio.encoder import encode_all
from fleet.workbench.sim.records.loudness import first_audible

_SAID = 1.2
_READING = 0.15
"""Seconds by which a mark's length may be misread."""
_GARBLED = 0.25
"""Seconds that may be missing of a mark beside which packets are empty; the codec begins anew there."""
_GRACE = 0.2
_TRIES = 4
_LATE_SAID = 18
"""Packets."""


@GROUP.check("U7", "payloads of 0, 1 and 3 bytes count as silence that keeps its time", steered=True)
async def silent(stage: Stage) -> str:
    return await twice(lambda: _silent(stage))


async def _silent(stage: Stage) -> str:
    frame = stage.profile.frame_ms / 1000
    count = round(0.36 / frame)
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene, stage.scene() as before:
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            speech = voice.say(before.mark, 0.6) + silence(count * frame) + voice.say(scene.mark, 1.4)
            probe.microphone.send = _emptied(probe, round(0.6 / frame), count)
            probe.microphone.say(speech)
            await finish(probe)
            understood(await answered(probe, since), scene)
            audio = heard(stage, scene)
            pause = span(audio, scene.mark)[0] - span(audio, before.mark)[1]
            seen = f"{count} packets of silence became {pause:.2f} s of {count * frame:.2f} s"
            require(abs(pause - count * frame) <= _GARBLED, seen)
            return seen


def _emptied(probe: Probe, first: int, count: int) -> Callable[[bytes], None]:
    """Return a way to send that empties so many packets, from a certain one on."""
    sent = 0

    def send(packet: bytes) -> None:
        nonlocal sent
        size = (0, 1, 3)[sent % 3]
        probe.audio.send(packet[:1] + bytes(size - 1) if size and _within(sent) else b"" if _within(sent) else packet)
        sent += 1

    def _within(number: int) -> bool:
        return first <= number < first + count

    return send


@GROUP.check(
    "U8",
    "a wake word's 33 packets within 5 ms are taken, kept out of the command, and do not harm it",
    profiles="P1 P3 P4 P6 P7 P9",
    steered=True,
)
async def woken(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene, stage.scene() as wake:
        async with stage.probe() as probe:
            await probe.hello()
            frame_ms, count = probe.profile.frame_ms, probe.profile.wake_packets
            packets = encode_all(voice.say(wake.mark, count * frame_ms / 1000), frame_ms)[:count]
            since = probe.clock()
            for packet in packets:
                probe.audio.send(packet)
            took = probe.clock() - since
            probe.detect("hi esp")
            probe.listen()
            probe.microphone.on = False
            await asyncio.sleep(WARM_UP)
            probe.microphone.on = True
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            got = complete(stage, scene, _SAID, short=0.3 + _READING)
            leaked = _before(heard(stage, scene), scene.mark)
            require(leaked <= _READING, f"recognition was given {leaked:.2f} s of the wake word before the command")
            return (
                f"{len(packets)} packets in {took * 1000:.1f} ms; {got:.2f} of {_SAID:g} s of the command heard alone"
            )


def _before(audio: HeardAudio, mark: int) -> float:
    """Return for how many seconds there is sound before a mark begins: too little of another mark cannot be read."""
    begin, _ = span(audio, mark)
    first = first_audible(audio.pcm)
    return 0.0 if first is None else max(0.0, begin - first / voice.RATE)


@GROUP.check("U9", "a burst of 40 packets after a gap is heard without loss and in order", steered=True)
async def burst(stage: Stage) -> str:
    return await twice(lambda: _burst(stage))


async def _burst(stage: Stage) -> str:
    seconds = 40 * stage.profile.frame_ms / 1000
    lengths = (0.6 * seconds, 0.4 * seconds)
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene, stage.scene() as after:
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            held: list[bytes] = []
            probe.microphone.send = held.append
            probe.microphone.say(voice.say(scene.mark, lengths[0]) + voice.say(after.mark, lengths[1]))
            await probe.microphone.said()
            probe.microphone.send = probe.audio.send
            for packet in held:
                probe.audio.send(packet)
            await finish(probe)
            understood(await answered(probe, since), scene)
            audio = heard(stage, scene)
            got = [length(audio, one.mark) for one in (scene, after)]
            parts = [f"{one:.2f} of {said:.2f} s" for one, said in zip(got, lengths, strict=True)]
            seen = f"{len(held)} packets at once: {parts[0]}, then {parts[1]}"
            order = [one.mark for one in audio.marks]
            require(order == [scene.mark, after.mark], f"{seen}, in the wrong order or in pieces")
            require(all(abs(one - said) <= _READING for one, said in zip(got, lengths, strict=True)), seen)
            return seen


@GROUP.check("U10", "audio before `listen start` does no harm", steered=True)
async def early(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene, stage.scene() as before:
        async with stage.probe() as probe:
            await probe.hello()
            probe.microphone.on = True
            probe.microphone.say(voice.say(before.mark, 0.6))
            await probe.microphone.said()
            since = probe.clock()
            probe.listen()
            probe.microphone.say(silence(0.3) + voice.say(scene.mark, _SAID))
            await finish(probe)
            understood(await answered(probe, since), scene)
            got = complete(stage, scene, _SAID)
            kept = length(heard(stage, scene), before.mark)
            wrong = [one for one in probe.mail.messages if one.kind in ("goodbye", "alert")]
            require(not wrong, f"the device was told {wrong[0] if wrong else ''}")
            return f"{got:.2f} of {_SAID:g} s of speech heard, and {kept:.2f} of 0.6 s from before `listen start`"


@GROUP.check(
    "U11", "packets that follow `listen stop` within 200 ms belong to the utterance", profiles="P5", steered=True
)
async def trailing(stage: Stage) -> str:
    async with talking(stage) as probe:
        for _ in range(_TRIES):
            with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
                took = await _say_late(probe, scene)
                if took >= _GRACE:
                    continue
                got = complete(stage, scene, _LATE_SAID * probe.profile.frame_ms / 1000, short=0.09)
                return f"3 packets up to {took * 1000:.0f} ms late, {got:.2f} s of speech heard"
        raise NotApplicable("this machine is too busy to send three packets within 200 ms")


async def _say_late(probe: Probe, scene: Scene) -> float:
    """Say a scene whose last three packets follow the end of the recording, and return how late the last one was."""
    since, late = probe.clock(), list[bytes]()
    await press(probe)
    probe.microphone.send = _withheld(probe, _LATE_SAID - 3, late)
    probe.microphone.say(voice.say(scene.mark, _LATE_SAID * probe.profile.frame_ms / 1000))
    await probe.microphone.said()
    probe.release()
    stopped = probe.clock()
    for packet in late:
        await asyncio.sleep(0.05)
        probe.audio.send(packet)
    took = probe.clock() - stopped
    understood(await answered(probe, since), scene)
    return took


def _withheld(probe: Probe, count: int, late: list[bytes]) -> Callable[[bytes], None]:
    """Return a way to send that passes so many packets on, and keeps the rest."""
    sent = 0

    def send(packet: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent <= count:
            probe.audio.send(packet)
        else:
            late.append(packet)

    return send
