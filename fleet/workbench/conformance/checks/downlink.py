"""Group D: UDP downlink. What the server's audio is like: numbers, keys, form, pace."""

import asyncio

from fleet.workbench.conformance.catalogue import Group
from fleet.workbench.conformance.context import Answer, CheckContext, answered
from fleet.workbench.conformance.judge import (
    decode,
    judge_forms,
    judge_keystream,
    judge_sequences,
    judge_spacing,
    judge_timestamps,
    play,
    silent_head,
)
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, finish, press, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.audio import toc
from fleet.workbench.sim.scripted.capture import Datagram
from fleet.workbench.sim.scripted.device import ScriptedDevice

GROUP = Group("D", "UDP downlink")

_SAID = 1.0
_SPARE = 2
"""Packets of the device's queue that a server leaves free: the network may bunch some."""
_MOST_LEAD = 10
_LONG = 60.0


@GROUP.check("D1", "sequence numbers begin at 1 or above and rise across turns, until the next hello", steered=True)
async def numbered(context: CheckContext) -> str:
    async with talking(context) as device:
        await _turns(context, device, 2)
        await device.hello()
        if device.profile.mode != "manual":
            device.listen()
        await _turns(context, device, 1)
        return judge_sequences(device.audio.datagrams)


@GROUP.check("D2", "no keystream is used twice, in or across directions", steered=True)
async def enciphered(context: CheckContext) -> str:
    async with talking(context) as device:
        await _turns(context, device, 2)
        return judge_keystream(device.audio.hello.nonce, device.audio.headers, device.audio.datagrams)


@GROUP.check(
    "D3", "timestamps for echo cancellation rise from above 0, in frames of 60 ms", profiles="P4", steered=True
)
async def stamped(context: CheckContext) -> str:
    async with talking(context) as device:
        await _turns(context, device, 2)
        return judge_timestamps(device.audio.datagrams)


@GROUP.check(
    "D4", "the device's queue never overflows nor runs dry in a reply of 60 s", steered=True, seconds=2 * _LONG + 60
)
async def paced(context: CheckContext) -> str:
    try:
        return await _long_reply(context)
    except _HeldUp:
        return await _long_reply(context)


class _HeldUp(Failed):
    """The reply ran dry while this process stood still as long: then the whole machine may have."""


async def _long_reply(context: CheckContext) -> str:
    with context.monologue(_LONG) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID), seconds=_LONG + 15)
            datagrams = _of(device, answer)
            playback = play(datagrams)
            lasted = playback.ended - datagrams[0].at if datagrams else 0.0
            gaps = f"{len(playback.gaps)} underruns, the longest {playback.longest_gap * 1000:.0f} ms"
            seen = f"queue ≤ {playback.deepest} packets, {gaps}, {len(datagrams)} datagrams in {lasted:.1f} s"
            require(lasted >= _LONG - 5, f"the reply of {_LONG:g} s ended early: {seen}")
            require(playback.deepest <= context.profile.queue - _SPARE, seen)
            if playback.longest_gap > _frame(device) and device.loop_lag.worst >= playback.longest_gap / 2:
                raise _HeldUp(seen)
            require(playback.longest_gap <= _frame(device), seen)
            return seen


@GROUP.check("D5", "the first packets come in no burst that a socket's 6 slots cannot take", steered=True)
async def gentle(context: CheckContext) -> str:
    with context.scene(reply_seconds=3.0) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID))
            return judge_spacing(_of(device, answer))


@GROUP.check("D6", "every datagram has 24 to 1200 bytes", steered=True)
async def formed(context: CheckContext) -> str:
    async with talking(context) as device:
        await _turns(context, device, 2)
        return judge_forms(device.audio.datagrams)


@GROUP.check("D7", "audio comes from the address that the hello named", steered=True)
async def addressed(context: CheckContext) -> str:
    async with talking(context) as device:
        await _turns(context, device, 1)
        senders = {one.source for one in device.audio.datagrams}
        named = device.audio.server
        require(senders == {named}, f"audio from {', '.join(f'{host}:{port}' for host, port in sorted(senders))}")
        return f"{len(device.audio.datagrams)} datagrams, all from {named[0]}:{named[1]}"


@GROUP.check("D8", "payloads are mono Opus of the announced rate and length, and hold the answer", steered=True)
async def decoded(context: CheckContext) -> str:
    seconds = 3.0
    with context.scene(reply_seconds=seconds) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID))
            hello = device.audio.hello
            pcm = decode(_of(device, answer), hello.sample_rate, hello.frame_ms)
            got = voice.dominant(voice.read(pcm, hello.sample_rate)).get(scene.mark, 0.0)
            seen = f"{got:.2f} of {seconds:g} s of the voice heard, {hello.sample_rate} Hz, {hello.frame_ms} ms"
            require(abs(got - seconds) <= 0.3, seen)
            return seen


@GROUP.check("D9", "the first sound comes at least 100 ms after `tts start`", steered=True)
async def prepared(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            since = device.clock()
            await press(device)
            device.microphone.say(voice.say(scene.mark, _SAID))
            await finish(device)
            start = await device.messages.expect("tts", "start", seconds=15, after=since)
            await device.audio.expect(8, seconds=10, after=since)
            # `tts start` is seen when it is read: this process may have been late, a datagram's time is the kernel's.
            late = device.loop_lag.stalled_since(start.at - 0.05)
            await answered(device, since)
            datagrams = device.audio.datagrams
            head = silent_head(datagrams, device.audio.hello.sample_rate)
            require(head < len(datagrams), "no sound came")
            gap = datagrams[head].at - start.at
            require(gap + late >= 0.1, f"the first sound came {gap * 1000:.0f} ms after `tts start`")
            return (
                f"first datagram after {(datagrams[0].at - start.at) * 1000:.0f} ms, first sound after {gap * 1000:.0f}"
            )


@GROUP.check("D10", "`tts stop` comes after the last datagram, and soon after the last sound", steered=True)
async def ended(context: CheckContext) -> str:
    with context.scene(reply_seconds=2.0) as scene:
        async with talking(context) as device:
            answer = await ask(device, voice.say(scene.mark, _SAID))
            late = device.loop_lag.stalled_since(answer.stop.at - 0.05)
            await asyncio.sleep(0.5)
            datagrams = _of(device, answer)
            require(datagrams, "no datagram came")
            playback = play(datagrams)
            after_last = answer.stop.at - datagrams[-1].at
            after_end = answer.stop.at - playback.ended
            seen = (
                f"`tts stop` {after_last * 1000:.0f} ms after the last datagram, {after_end * 1000:.0f} ms after the "
                f"last sound, lead ≤ {playback.deepest} packets"
            )
            require(after_last >= 0.05, seen)
            require(after_end - late <= playback.deepest * _frame(device) + 0.3, seen)
            return seen


@GROUP.check("D11", "no speech begins before the device has sent a packet: its address is not known", steered=True)
async def held(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with context.scripted_device() as device:
            await device.hello()
            since = device.clock()
            if device.profile.wake_packets:
                device.detect("hi esp")
            if device.profile.mode != "manual":
                device.listen()
            device.microphone.on = False
            await device.messages.expect_none("tts", "start", seconds=3.0, after=since)
            sent = device.clock()
            device.microphone.on = device.profile.mode != "manual"
            greeted = await device.messages.until(lambda: bool(device.messages.find("tts", "start", after=sent)), 2.0)
            if greeted:
                await answered(device, sent)
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            return "no `tts start` in 3 s without a packet; " + ("then a greeting" if greeted else "no greeting at all")


@GROUP.check("D12", "audio ends within 100 ms of an interruption, with little left in the device's queue", steered=True)
async def cut(context: CheckContext) -> str:
    with context.monologue(8.0) as scene:
        async with talking(context) as device:
            await until_speaking(device, scene, 2.0)
            aborted = device.clock()
            device.abort()
            await asyncio.sleep(2.5)
            late = device.loop_lag.stalled_since(aborted)
            before, after = device.audio.between(0.0, aborted), device.audio.since(aborted)
            playback = play([*before, *after])
            left = round(max(0.0, playback.ended - aborted) / _frame(device))
            took = after[-1].at - aborted if after else 0.0
            seen = f"last datagram {took * 1000:.0f} ms after the abort, {left} packets still to be played then"
            require(took <= 0.1 + late, seen)
            require(left <= _MOST_LEAD, seen)
            return seen


async def _turns(context: CheckContext, device: ScriptedDevice, count: int) -> None:
    for _ in range(count):
        with context.scene(reply_seconds=REPLY_SECONDS) as scene:
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)


def _of(device: ScriptedDevice, answer: Answer) -> list[Datagram]:
    """Return the datagrams of an answer, with those around it that should not be there."""
    return device.audio.between(answer.start.at - 0.5, answer.stop.at + 1.0)


def _frame(device: ScriptedDevice) -> float:
    """Return for how long a packet of the server lasts, in seconds."""
    packets = [toc.duration_ms(one.payload) for one in device.audio.datagrams]
    return (packets[0] if packets else device.audio.hello.frame_ms) / 1000
