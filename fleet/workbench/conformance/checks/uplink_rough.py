"""Group U, the rest: speech over an answer, time stamps of the device, and a bad line."""

import asyncio
import random

from fleet.workbench.conformance.checks.uplink import GROUP
from fleet.workbench.conformance.context import CheckContext, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import mentioned
from fleet.workbench.conformance.talk import (
    REPLY_SECONDS,
    ask,
    complete,
    finish,
    talking,
    understood,
)
from fleet.workbench.conformance.verdict import Failed, require

_SAID = 1.2
_LOSS, _SWAPS = 0.05, 0.02
_INTERRUPTED = 2.0
"""Seconds from the first word to the end of the answer that it interrupts."""


@GROUP.check(
    "U12",
    "speech over the answer is ignored in auto mode, and interrupts it in realtime mode where echo is cancelled",
    profiles="P1 P2 P3 P4 P6 P7 P8 P9",
    steered=True,
)
async def overlapping(context: CheckContext) -> str:
    if context.profile.mode == "realtime":
        return await _interrupts(context)
    return await _is_ignored(context)


async def _is_ignored(context: CheckContext) -> str:
    seconds = 3.0
    with (
        context.scene(reply_seconds=seconds) as scene,
        context.scene(reply_seconds=REPLY_SECONDS) as over,
        context.scene(reply_seconds=REPLY_SECONDS) as later,
    ):
        async with talking(context) as device:
            since = device.clock()
            device.microphone.say(voice.say(scene.mark, _SAID))
            await finish(device)
            start = await device.messages.expect("tts", "start", seconds=15, after=since)
            device.microphone.hush()
            device.microphone.on = True
            await asyncio.sleep(0.4)
            device.microphone.say(voice.say(over.mark, _SAID))
            answer = await answered(device, since)
            lasted = answer.stop.at - start.at
            require(lasted >= seconds - 0.5, f"the answer of {seconds:g} s was cut off after {lasted:.2f} s")
            understood(await ask(device, voice.say(later.mark, _SAID)), later)
            require(not context.steering.heard(over.mark), "recognition was given what was said over the answer")
            return f"the answer went on for {lasted:.2f} s; the next turn is free of what was said over it"


async def _interrupts(context: CheckContext) -> str:
    with context.monologue(9.0) as scene, context.scene(reply_seconds=REPLY_SECONDS) as over:
        async with talking(context) as device:
            since = device.clock()
            device.microphone.say(voice.say(scene.mark, _SAID))
            await finish(device)
            await device.messages.expect("tts", "start", seconds=15, after=since)
            await asyncio.sleep(1.0)
            device.microphone.hush()
            began = device.clock()
            device.microphone.say(voice.say(over.mark, 1.5))
            await finish(device)
            if context.profile.aec:
                # Without an echo canceller a server must not take its own voice for the user's, so it may hear neither.
                stop = await device.messages.expect("tts", "stop", seconds=15.0, after=began)
                if stop.at - began > _INTERRUPTED:
                    require(not context.steering.heard(over.mark), "recognition was given what the answer went on over")
                    return "the answer goes on, and what was said over it is ignored: the server cancels no echo"
            else:
                stop = await device.messages.expect("tts", "stop", seconds=_INTERRUPTED, after=began)
            answer = await answered(device, stop.at)
            text = str(answer.heard["text"]) if answer.heard else ""
            if not device.messages.find("stt", after=began) or mentioned(answer.text) != over.mark:
                raise Failed(f"after the interruption the answer was {answer.text!r} to {text!r}")
            return f"`tts stop` {(stop.at - began) * 1000:.0f} ms after the interruption began, and a new answer"


@GROUP.check("U13", "uplink timestamps above 0 are accepted", profiles="P4", steered=True)
async def stamped(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as first, context.scene(reply_seconds=REPLY_SECONDS) as second:
        async with talking(context) as device:
            understood(await ask(device, voice.say(first.mark, _SAID)), first)
            stamps = [one.timestamp for one in device.audio.datagrams]
            require(stamps and max(stamps) > 0, "no downlink timestamp above 0 to answer with")
            stamp = max(stamps)

            def send(packet: bytes) -> None:
                nonlocal stamp
                stamp += device.profile.frame_ms
                device.audio.send(packet, timestamp=stamp)

            device.microphone.send = send
            understood(await ask(device, voice.say(second.mark, _SAID)), second)
            got = complete(context, second, _SAID)
            return f"{got:.2f} of {_SAID:g} s of speech heard with timestamps up to {stamp}"


@GROUP.check("U14", "a turn completes with 5 % of the packets lost and 2 % out of order", steered=True)
async def lossy(context: CheckContext) -> str:
    said = 3.0
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            chance, lost, swapped = random.Random(scene.mark), 0, 0
            kept: list[tuple[int, bytes]] = []

            def send(packet: bytes) -> None:
                nonlocal lost, swapped
                device.audio.sent += 1
                numbered = (device.audio.sent, packet)
                if chance.random() < _LOSS:
                    lost += 1
                elif not kept and chance.random() < _SWAPS:
                    swapped += 1
                    kept.append(numbered)
                else:
                    for number, one in (numbered, *kept):
                        device.audio.send(one, sequence=number)
                    kept.clear()

            device.microphone.send = send
            understood(await ask(device, voice.say(scene.mark, said)), scene)
            got = complete(context, scene, said, short=0.5)
            return (
                f"{lost} of {device.audio.sent} packets lost, {swapped} late; {got:.2f} of {said:g} s of speech heard"
            )
