"""Group H, continued: what a hello means for the sessions before it, and for the audio after it."""

import asyncio

from fleet.workbench.conformance.checks.hello import GROUP
from fleet.workbench.conformance.context import CheckContext, speaking, turn, utter
from fleet.workbench.conformance.steering.script import Round, Scene
from fleet.workbench.conformance.steering.voice import dominant
from fleet.workbench.conformance.verdict import require, span
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.received import ReceivedMessage

_SOON = 3.0
_SAID = 1.2
_ROUNDED = 0.4
"""Seconds by which the length of recognised speech may differ from what was said."""
_MARGIN = 2.5
"""Seconds of silence that may be recognised along with it."""


@GROUP.check("H3", "a hello in an open session ends that one silently", steered=True)
async def replaces_silently(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        with context.monologue(15.0) as scene, context.scene() as following:
            await speaking(device, scene)
            device.microphone.on = False
            asked = device.clock()
            await device.hello()
            answered = device.messages.find("hello", after=asked)[0].at
            await device.messages.expect_none("goodbye", seconds=1.5, after=asked)
            late = device.audio.since(answered + 0.5)
            require(not late, f"{len(late)} packets of the old answer came later than 0.5 s after the new hello")
            answer = await turn(device, following)
            return f"no goodbye, the old answer ended, the next turn was answered: {answer.text}"


@GROUP.check("H4", "of two hellos 100 ms apart both are answered, and the last answer counts", steered=True)
async def last_one_counts(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        first, last = await _two_hellos(device)
        await device.adopt(first)
        with context.scene() as unheard, context.scene() as heard:
            # A device that took the first answer's key for the last one's session.
            device.session = last.session
            since = await utter(device, unheard)
            await device.messages.expect_none("stt", seconds=2.0, after=since)
            require(not context.steering.heard(unheard.mark), "packets under the first key were recognised")
            device.microphone.hush()
            device.microphone.on = False
            await device.adopt(last)
            answer = await turn(device, heard)
            return f"two answers; the first key is ignored, the last one serves: {answer.text}"


@GROUP.check("H6", "frames of 20 ms are decoded as such", steered=True)
async def takes_short_frames(context: CheckContext) -> str:
    async with context.scripted_device(frame_ms=20) as device:
        await device.hello()
        with context.scene() as scene:
            await turn(device, scene)
            heard = context.steering.heard(scene.mark)
            require(heard, "nothing was recognised")
            speech = dominant(heard[-1].marks).get(scene.mark, 0.0)
            whole = heard[-1].seconds
            require(abs(speech - _SAID) <= _ROUNDED, f"{_SAID:g} s of speech were recognised as {speech:.1f} s")
            require(whole <= _SAID + _MARGIN, f"{_SAID:g} s of speech were recognised as {whole:.1f} s of audio")
            return f"{_SAID:g} s of speech heard as {speech:.1f} s, in {whole:.1f} s of audio"


@GROUP.check("H10", "a hello is answered within three seconds while the models hang", steered=True)
async def needs_no_models(context: CheckContext) -> str:
    async with context.scripted_device() as device:
        await device.hello()
        with context.scene(asr="silent") as deaf, context.scene(rounds=(Round(fault="silent"),)) as mute:
            deafness = await _greet_while_hanging(context, device, deaf, "recognition")
            muteness = await _greet_while_hanging(context, device, mute, "the chat model")
            return f"answered in {span(deafness)} while recognition hung, {span(muteness)} while the chat model did"


async def _two_hellos(device: ScriptedDevice) -> tuple[ReceivedMessage, ReceivedMessage]:
    for _ in range(2):
        device.send(outbound.hello(device.profile))
        await asyncio.sleep(0.1)
    both = await device.messages.until(lambda: len(device.messages.find("hello")) == 2, _SOON)
    require(both, f"two hellos were answered {len(device.messages.find('hello'))} times within {_SOON:g} s")
    first, last = device.messages.find("hello")
    require(first.session != last.session, "both hellos were answered with the same session id")
    require(first["udp"] != last["udp"], "both hellos were answered with the same key")
    return first, last


async def _greet_while_hanging(context: CheckContext, device: ScriptedDevice, scene: Scene, what: str) -> float:
    await utter(device, scene)

    def hanging() -> bool:
        asked, heard = context.steering.asked(scene.mark), context.steering.heard(scene.mark)
        return bool(heard if scene.asr == "silent" else asked)

    require(await context.steering.until(hanging, 10.0), f"{what} was never asked")
    device.microphone.on = False
    asked = device.clock()
    await device.hello(seconds=_SOON)
    return device.messages.find("hello", after=asked)[0].at - asked
