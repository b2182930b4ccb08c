"""A simulated user with a list of utterances."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fleet.workbench.sim.audio.microphone import UserVoice
from fleet.workbench.sim.device import LISTEN_SECONDS, TURN_SECONDS, SimDevice
from fleet.workbench.sim.records.turns import Turn
from fleet.workbench.sim.runtime.state import State

_RETURN = 3.0
"""Longest wait in seconds until the device listens again after an answer."""

Opening = Literal["wake", "press"]


@dataclass(frozen=True, slots=True)
class Typed:
    """What the user types in place of saying it."""

    text: str


Said = bytes | UserVoice | Typed
"""PCM at 16 kHz, a live voice, or a text."""


@dataclass(frozen=True, slots=True)
class Script:
    """What the user does: opens the conversation when it is not open, says one thing after the other, hangs up.

    `pause` is the time in seconds taken before speaking; a greeting that begins by then is heard to its end first.
    """

    utterances: Sequence[Said]
    opening: Opening = "wake"
    wake_text: str = "hi"
    pause: float = 0.6
    turn_seconds: float = TURN_SECONDS


async def converse(device: SimDevice, script: Script) -> list[Turn]:
    """Go through a script and return its turns; ends early when the device does not listen."""
    turns: list[Turn] = []
    for utterance in script.utterances:
        turns.append(await _say(device, script, utterance))
        if turns[-1].outcome == "not listening":
            break
    if device.profile.mode != "manual":
        await device.until(_RETURN, lambda: device.listening or not device.session)
    if device.session:
        await device.hang_up()
    return turns


async def _say(device: SimDevice, script: Script, utterance: Said) -> Turn:
    if isinstance(utterance, Typed):
        return await device.type(utterance.text, script.turn_seconds)
    if device.profile.mode != "manual":
        if device.state is State.IDLE and not await _open(device, script):
            return device.turns.miss()
        await asyncio.sleep(script.pause)
    return await device.say(utterance, script.turn_seconds)


async def _open(device: SimDevice, script: Script) -> bool:
    if script.opening == "wake" and device.profile.wake_packets:
        return await device.wake(script.wake_text, seconds=LISTEN_SECONDS)
    return await device.press(seconds=LISTEN_SECONDS)
