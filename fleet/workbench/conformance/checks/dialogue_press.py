"""Group S, continued: push-to-talk."""

import asyncio

from fleet.workbench.conformance.checks.dialogue import GROUP
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Scene, mentioned
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, press, talking, understood
from fleet.workbench.conformance.verdict import require
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records.turns import Turn
from fleet.workbench.sim.scripted.microphone import silence

_SAID = 1.0
_HELD = 1.0
_REPLY = 8.0
_GOODBYE = 3.0
_TURN = 30.0
_INTO = (0.4, 2.0)
"""Seconds into an answer at which the button is pressed."""


@GROUP.check("S20", "a press in which nobody spoke gets an answer, and the next one works", profiles="P5", steered=True)
async def unheard(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as scripted:
            await press(scripted)
            scripted.microphone.say(silence(_HELD))
            await scripted.microphone.said()
            released = scripted.clock()
            scripted.release()

            def told() -> bool:
                return bool(
                    scripted.messages.find("tts", "stop", after=released)
                    or scripted.messages.find("alert", after=released)
                )

            require(await scripted.messages.until(told, _REPLY), f"neither a sentence nor an alert within {_REPLY:g} s")
            said = [str(one["text"]) for one in scripted.messages.find("tts", "sentence_start", after=released)]
            shown = [str(one["message"]) for one in scripted.messages.find("alert", after=released)]
            require(not scripted.messages.find("stt", after=released), "`stt` for a press in which nobody spoke")
            await asyncio.sleep(0.3)
            understood(await ask(scripted, voice.say(scene.mark, _SAID)), scene)
            return f"{' '.join([*said, *shown])!r}; the next press was answered"


@GROUP.check(
    "S21",
    "firmware that loses wake words in an open channel gets a goodbye after a push-to-talk turn",
    profiles="P6",
    steered=True,
)
async def closed(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with context.simulated_device(mode="manual") as device:
            turn = await device.say(voice.say(scene.mark, _SAID), _TURN)
            require(turn.outcome == "answered", f"the turn ended as {turn.outcome!r}")
            stopped = device.journal.clock()
            over = await device.until(_GOODBYE, lambda: not device.session)
            require(over, f"no goodbye within {_GOODBYE:g} s of the answer: all wake words after it are lost")
            took = device.journal.clock() - stopped
            require(await device.wake(), "the wake word was lost")
            return f"goodbye {took * 1000:.0f} ms after the answer, and the wake word was heard"


@GROUP.check(
    "S27", "a press of push-to-talk during an answer (`abort`, `listen start`) is heard", profiles="P6", steered=True
)
async def pressed_over(context: CheckContext) -> str:
    # How soon the audio of an answer ends after `abort` is D12's.
    context.tolerated |= {"audio-outside-speaking", "audio-after-abort"}
    return await _press_over(context)


@GROUP.check(
    "S28",
    "a press during an answer without `abort` is heard, and no `tts stop` ends it: py-xiaozhi would stop to record",
    profiles="P8",
    steered=True,
)
async def pressed_unannounced(context: CheckContext) -> str:
    return await _press_over(context)


async def _press_over(context: CheckContext) -> str:
    # How smooth an answer is, is D4's.
    context.tolerated |= {"underrun", "pause"}
    seen = []
    for into in _INTO:
        with context.monologue(10.0) as long, context.scene(reply_seconds=REPLY_SECONDS) as scene:
            async with context.simulated_device(mode="manual") as device:
                turn = await _interject(device, into, long, scene)
                require(turn.outcome == "answered", f"the press {into:g} s into the answer ended as {turn.outcome!r}")
                require(not turn.cut_off, f"the press {into:g} s into the answer was cut off")
                require(mentioned(turn.transcript) == scene.mark, f"heard {turn.transcript!r}")
                require(str(scene.mark) in turn.reply, f"the answer is {turn.reply!r}")
                seen.append(f"{into:g} s into it: answered {turn.latencies['tts_start']:.0f} ms after the speech")
    return "; ".join(seen)


async def _interject(device: SimDevice, into: float, first: Scene, second: Scene) -> Turn:
    """Say one thing, and the other over its answer; return the turn of that."""
    async with asyncio.TaskGroup() as group:
        # It ends with the press over its answer.
        group.create_task(device.say(voice.say(first.mark, _SAID), _TURN), name="first press")
        if not await device.until(_TURN, lambda: device.speaking):
            return device.turns.miss()
        await asyncio.sleep(into)
        return await device.interject(voice.say(second.mark, _SAID), _TURN)
