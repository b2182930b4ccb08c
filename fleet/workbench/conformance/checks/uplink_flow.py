"""Group U, continued: how speech gets through whatever happens to its packets."""

import asyncio
from collections.abc import Callable

from fleet.workbench.conformance.checks.uplink import GROUP
from fleet.workbench.conformance.context import CheckContext, answered
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
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.microphone import silence

_SAID = 1.2
_READING = 0.15
"""Seconds by which a mark's length may be misread."""
_GARBLED = 0.25
"""Seconds that may be missing of a mark beside which packets are empty; the codec begins anew there."""
_GRACE = 0.2
_TRIES = 4
_LATE_SAID = 18
"""Packets."""
_LATE_SHORT = 0.1
"""Seconds that may seem to be missing: the encoder garbles up to 0.09 s at an edge of a mark, and two lost packets are
more."""


@GROUP.check("U7", "payloads of 0, 1 and 3 bytes count as silence that keeps its time", steered=True)
async def silent(context: CheckContext) -> str:
    return await twice(lambda: _silent(context))


async def _silent(context: CheckContext) -> str:
    frame = context.profile.frame_ms / 1000
    count = round(0.36 / frame)
    with context.scene(reply_seconds=REPLY_SECONDS) as scene, context.scene() as before:
        async with talking(context) as device:
            since = device.clock()
            await press(device)
            speech = voice.say(before.mark, 0.6) + silence(count * frame) + voice.say(scene.mark, 1.4)
            device.microphone.send = _emptied(device, round(0.6 / frame), count)
            device.microphone.say(speech)
            await finish(device)
            understood(await answered(device, since), scene)
            audio = heard(context, scene)
            pause = span(audio, scene.mark)[0] - span(audio, before.mark)[1]
            seen = f"{count} packets of silence became {pause:.2f} s of {count * frame:.2f} s"
            require(abs(pause - count * frame) <= _GARBLED, seen)
            return seen


def _emptied(device: ScriptedDevice, first: int, count: int) -> Callable[[bytes], None]:
    """Return a way to send that empties so many packets, from a certain one on."""
    sent = 0

    def send(packet: bytes) -> None:
        nonlocal sent
        size = (0, 1, 3)[sent % 3]
        device.audio.send(packet[:1] + bytes(size - 1) if size and _within(sent) else b"" if _within(sent) else packet)
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
async def woken(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene, context.scene() as wake:
        async with context.scripted_device() as device:
            await device.hello()
            frame_ms, count = device.profile.frame_ms, device.profile.wake_packets
            packets = encode_all(voice.say(wake.mark, count * frame_ms / 1000), frame_ms)[:count]
            since = device.clock()
            for packet in packets:
                device.audio.send(packet)
            took = device.clock() - since
            device.detect("hi esp")
            device.listen()
            device.microphone.on = False
            await asyncio.sleep(WARM_UP)
            device.microphone.on = True
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            got = complete(context, scene, _SAID, short=0.3 + _READING)
            leaked = _before(heard(context, scene), scene.mark)
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
async def burst(context: CheckContext) -> str:
    return await twice(lambda: _burst(context))


async def _burst(context: CheckContext) -> str:
    seconds = 40 * context.profile.frame_ms / 1000
    lengths = (0.6 * seconds, 0.4 * seconds)
    with context.scene(reply_seconds=REPLY_SECONDS) as scene, context.scene() as after:
        async with talking(context) as device:
            since = device.clock()
            await press(device)
            held: list[bytes] = []
            device.microphone.send = held.append
            device.microphone.say(voice.say(scene.mark, lengths[0]) + voice.say(after.mark, lengths[1]))
            await device.microphone.said()
            device.microphone.send = device.audio.send
            for packet in held:
                device.audio.send(packet)
            await finish(device)
            understood(await answered(device, since), scene)
            audio = heard(context, scene)
            got = [length(audio, one.mark) for one in (scene, after)]
            parts = [f"{one:.2f} of {said:.2f} s" for one, said in zip(got, lengths, strict=True)]
            seen = f"{len(held)} packets at once: {parts[0]}, then {parts[1]}"
            order = [one.mark for one in audio.marks]
            require(order == [scene.mark, after.mark], f"{seen}, in the wrong order or in pieces")
            require(all(abs(one - said) <= _READING for one, said in zip(got, lengths, strict=True)), seen)
            return seen


@GROUP.check("U10", "audio before `listen start` does no harm", steered=True)
async def early(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene, context.scene() as before:
        async with context.scripted_device() as device:
            await device.hello()
            device.microphone.on = True
            device.microphone.say(voice.say(before.mark, 0.6))
            await device.microphone.said()
            since = device.clock()
            device.listen()
            device.microphone.say(silence(0.3) + voice.say(scene.mark, _SAID))
            await finish(device)
            understood(await answered(device, since), scene)
            got = complete(context, scene, _SAID)
            kept = length(heard(context, scene), before.mark)
            wrong = [one for one in device.messages.all if one.kind in ("goodbye", "alert")]
            require(not wrong, f"the device was told {wrong[0] if wrong else ''}")
            return f"{got:.2f} of {_SAID:g} s of speech heard, and {kept:.2f} of 0.6 s from before `listen start`"


@GROUP.check(
    "U11", "packets that follow `listen stop` within 200 ms belong to the utterance", profiles="P5", steered=True
)
async def trailing(context: CheckContext) -> str:
    async with talking(context) as device:
        for _ in range(_TRIES):
            with context.scene(reply_seconds=REPLY_SECONDS) as scene:
                took = await _say_late(device, scene)
                if took >= _GRACE:
                    continue
                got = complete(context, scene, _LATE_SAID * device.profile.frame_ms / 1000, short=_LATE_SHORT)
                return f"3 packets up to {took * 1000:.0f} ms late, {got:.2f} s of speech heard"
        raise NotApplicable("this machine is too busy to send three packets within 200 ms")


async def _say_late(device: ScriptedDevice, scene: Scene) -> float:
    """Say a scene whose last three packets follow the end of the recording, and return how late the last one was."""
    since, late = device.clock(), list[bytes]()
    await press(device)
    device.microphone.send = _withheld(device, _LATE_SAID - 3, late)
    device.microphone.say(voice.say(scene.mark, _LATE_SAID * device.profile.frame_ms / 1000))
    await device.microphone.said()
    device.release()
    stopped = device.clock()
    for packet in late:
        await asyncio.sleep(0.05)
        device.audio.send(packet)
    took = device.clock() - stopped
    understood(await answered(device, since), scene)
    return took


def _withheld(device: ScriptedDevice, count: int, late: list[bytes]) -> Callable[[bytes], None]:
    """Return a way to send that passes so many packets on, and keeps the rest."""
    sent = 0

    def send(packet: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent <= count:
            device.audio.send(packet)
        else:
            late.append(packet)

    return send
