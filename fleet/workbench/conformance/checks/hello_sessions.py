"""Group H, continued: what a hello means for the sessions before it, and for the audio after it."""

import asyncio

from fleet.workbench.conformance.checks.hello import GROUP
from fleet.workbench.conformance.probe.mail import Message
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, speaking, turn, utter
from fleet.workbench.conformance.steering.script import Round, Scene
from fleet.workbench.conformance.steering.voice import dominant
from fleet.workbench.conformance.verdict import require, span
from fleet.workbench.sim.messages import outbound

_SOON = 3.0
_SAID = 1.2
_ROUNDED = 0.4
"""Seconds by which the length of recognised speech may differ from what was said."""
_MARGIN = 2.5
"""Seconds of silence that may be recognised along with it."""


@GROUP.check("H3", "a hello in an open session ends that one silently", steered=True)
async def replaces_silently(stage: Stage) -> str:
    async with stage.probe() as probe:
        await probe.hello()
        with stage.monologue(15.0) as scene, stage.scene() as following:
            await speaking(probe, scene)
            probe.microphone.on = False
            asked = probe.clock()
            await probe.hello()
            answered = probe.mail.find("hello", after=asked)[0].at
            await probe.mail.refuse("goodbye", seconds=1.5, after=asked)
            late = probe.audio.since(answered + 0.5)
            require(not late, f"{len(late)} packets of the old answer came later than 0.5 s after the new hello")
            answer = await turn(probe, following)
            return f"no goodbye, the old answer ended, the next turn was answered: {answer.text}"


@GROUP.check("H4", "of two hellos 100 ms apart both are answered, and the last answer counts", steered=True)
async def last_one_counts(stage: Stage) -> str:
    async with stage.probe() as probe:
        first, last = await _two_hellos(probe)
        await probe.adopt(first)
        with stage.scene() as unheard, stage.scene() as heard:
            # A device that took the first answer's key for the last one's session.
            probe.session = last.session
            since = await utter(probe, unheard)
            await probe.mail.refuse("stt", seconds=2.0, after=since)
            require(not stage.steering.heard(unheard.mark), "packets under the first key were recognised")
            probe.microphone.hush()
            probe.microphone.on = False
            await probe.adopt(last)
            answer = await turn(probe, heard)
            return f"two answers; the first key is ignored, the last one serves: {answer.text}"


@GROUP.check("H6", "frames of 20 ms are decoded as such", steered=True)
async def takes_short_frames(stage: Stage) -> str:
    async with stage.probe(frame_ms=20) as probe:
        await probe.hello()
        with stage.scene() as scene:
            await turn(probe, scene)
            heard = stage.steering.heard(scene.mark)
            require(heard, "nothing was recognised")
            speech = dominant(heard[-1].marks).get(scene.mark, 0.0)
            whole = heard[-1].seconds
            require(abs(speech - _SAID) <= _ROUNDED, f"{_SAID:g} s of speech were recognised as {speech:.1f} s")
            require(whole <= _SAID + _MARGIN, f"{_SAID:g} s of speech were recognised as {whole:.1f} s of audio")
            return f"{_SAID:g} s of speech heard as {speech:.1f} s, in {whole:.1f} s of audio"


@GROUP.check("H10", "a hello is answered within three seconds while the models hang", steered=True)
async def needs_no_models(stage: Stage) -> str:
    async with stage.probe() as probe:
        await probe.hello()
        with stage.scene(asr="silent") as deaf, stage.scene(rounds=(Round(fault="silent"),)) as mute:
            deafness = await _greet_while_hanging(stage, probe, deaf, "recognition")
            muteness = await _greet_while_hanging(stage, probe, mute, "the chat model")
            return f"answered in {span(deafness)} while recognition hung, {span(muteness)} while the chat model did"


async def _two_hellos(probe: Probe) -> tuple[Message, Message]:
    for _ in range(2):
        probe.send(outbound.hello(probe.profile))
        await asyncio.sleep(0.1)
    both = await probe.mail.until(lambda: len(probe.mail.find("hello")) == 2, _SOON)
    require(both, f"two hellos were answered {len(probe.mail.find('hello'))} times within {_SOON:g} s")
    first, last = probe.mail.find("hello")
    require(first.session != last.session, "both hellos were answered with the same session id")
    require(first["udp"] != last["udp"], "both hellos were answered with the same key")
    return first, last


async def _greet_while_hanging(stage: Stage, probe: Probe, scene: Scene, what: str) -> float:
    await utter(probe, scene)

    def hanging() -> bool:
        asked, heard = stage.steering.asked(scene.mark), stage.steering.heard(scene.mark)
        return bool(heard if scene.asr == "silent" else asked)

    require(await stage.steering.until(hanging, 10.0), f"{what} was never asked")
    probe.microphone.on = False
    asked = probe.clock()
    await probe.hello(seconds=_SOON)
    return probe.mail.find("hello", after=asked)[0].at - asked
