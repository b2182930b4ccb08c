"""How a check talks: a channel that is ready, utterances of any make, and what recognition was given of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fleet.workbench.conformance.context import Answer, CheckContext, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.records import HeardAudio
from fleet.workbench.conformance.steering.script import Scene, mentioned
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.microphone import silence

REPLY_SECONDS = 1.2
"""Length of an answer that only has to come."""
WARM_UP = 0.2
"""From `listen start` to the first packet of a device's microphone, in seconds."""
ANSWER_SECONDS = 15.0
"""Longest wait for an answer, and for its end."""
_SILENCE = 1.5


@asynccontextmanager
async def talking(context: CheckContext, **changes: Any) -> AsyncIterator[ScriptedDevice]:
    """Run a device with a channel; its microphone is on, except in manual mode."""
    async with context.scripted_device(**changes) as device:
        await device.hello()
        if device.profile.mode != "manual":
            device.listen()
            await asyncio.sleep(WARM_UP)
        yield device


async def twice(once: Callable[[], Awaitable[str]]) -> str:
    """Repeat it once with other marks if it fails: the codec garbles a mark now and then, but a fault comes again."""
    try:
        return await once()
    except Failed:
        return await once()


async def press(device: ScriptedDevice) -> None:
    """Let the microphone be on, in manual mode by the button."""
    if device.profile.mode == "manual":
        device.listen()
        await asyncio.sleep(WARM_UP)


async def finish(device: ScriptedDevice) -> float:
    """Wait until everything was said, and end the utterance: by the button, or by silence. Return when that was."""
    await device.microphone.said()
    ended = device.clock()
    if device.profile.mode == "manual":
        device.release()
    else:
        device.microphone.say(silence(_SILENCE))
    return ended


async def ask(device: ScriptedDevice, pcm: bytes, seconds: float = ANSWER_SECONDS) -> Answer:
    """Say something, and return the answer to it."""
    since = device.clock()
    await press(device)
    device.microphone.say(pcm)
    await finish(device)
    return await answered(device, since, seconds)


async def until_speaking(device: ScriptedDevice, scene: Scene, seconds: float = 1.5) -> None:
    """Say a scene; return `seconds` after its answer began to be spoken."""
    since = device.clock()
    await press(device)
    device.microphone.say(voice.say(scene.mark, 1.0))
    await finish(device)
    start = await device.messages.expect("tts", "start", seconds=ANSWER_SECONDS, after=since)
    require(await device.audio.expect(seconds=ANSWER_SECONDS, after=start.at), "no audio came after `tts start`")
    await asyncio.sleep(seconds)


def length(audio: HeardAudio, mark: int) -> float:
    """Return for how many seconds a mark sounds in what recognition was given."""
    return voice.dominant(audio.marks).get(mark, 0.0)


def span(audio: HeardAudio, mark: int) -> tuple[float, float]:
    """Return when a mark begins and ends in what recognition was given.

    Raises:
        Failed: It is not in it.
    """
    found = [one for one in audio.marks if one.mark == mark]
    if not found:
        raise Failed("a part of what was said is missing in the audio that recognition was given")
    return found[0].begin, found[-1].end


def heard(context: CheckContext, scene: Scene) -> HeardAudio:
    """Return the fullest audio that recognition was given of a scene.

    Raises:
        Failed: It was given none.
    """
    audio = context.steering.heard(scene.mark)
    if not audio:
        raise Failed("recognition was given no audio of what was said")
    return max(audio, key=lambda one: length(one, scene.mark))


def understood(answer: Answer, scene: Scene) -> None:
    """The answer is the one to this scene.

    Raises:
        Failed: It is not, or the device did not get the transcript.
    """
    text = str(answer.heard["text"]) if answer.heard else ""
    require(mentioned(text) == scene.mark, f"`stt` says {text!r} instead of {scene.words!r}")
    require(str(scene.mark) in answer.text, f"the answer is {answer.text!r}")


def complete(context: CheckContext, scene: Scene, said: float, short: float = 0.15) -> float:
    """Return how long the scene sounds in what recognition was given; all but `short` seconds of what was said.

    Raises:
        Failed: More is missing, or it is longer than it was said.
    """
    got = length(heard(context, scene), scene.mark)
    require(got >= said - short, f"recognition was given {got:.2f} s of {said:g} s of speech")
    require(got <= said + 0.25, f"recognition was given {got:.2f} s of speech, of which only {said:g} s were said")
    return got
