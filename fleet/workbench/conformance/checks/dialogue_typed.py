"""Group S, continued: what is typed into the text box of py-xiaozhi, which comes as a `detect`."""

import asyncio

from fleet.workbench.conformance.checks.dialogue import GROUP
from fleet.workbench.conformance.context import CheckContext, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import require
from fleet.workbench.sim.scripted.device import ScriptedDevice

_CLIENT = "P8"
_SAID = 1.0
_GREETING = 1.5


@GROUP.check(
    "S24",
    "a question that is typed while it listens is shown and answered as a spoken one",
    profiles=_CLIENT,
    steered=True,
)
async def asked(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            text = f'scene {scene.mark}: "what"\n现在几点了？'
            since = device.clock()
            _type(device, text)
            answer = await answered(device, since)
            understood(answer, scene)
            shown = str(answer.heard["text"]) if answer.heard else ""
            require(shown == text, f"`stt` shows {shown!r} for {text!r}")
            early = [one for one in device.messages.find("tts", "stop", after=since) if one.at < answer.start.at]
            require(not early, "`tts stop` before the answer: this client then stops to record")
            return f"answered {answer.start.at - since:.1f} s after it was typed"


@GROUP.check("S25", "a question that is typed over an answer ends it and is answered", profiles=_CLIENT, steered=True)
async def interrupted(context: CheckContext) -> str:
    with context.monologue(8.0) as first, context.scene(reply_seconds=REPLY_SECONDS) as second:
        async with talking(context) as device:
            await until_speaking(device, first, 1.0)
            since = device.clock()
            device.abort()
            _type(device, f"scene {second.mark}: and now?")
            await device.messages.expect("tts", "stop", seconds=2.0, after=since)
            understood(await answered(device, since), second)
            return "the first answer ended, the second was spoken"


@GROUP.check(
    "S26",
    "a wake word that is typed gets a greeting or nothing, and what follows one answer",
    profiles=_CLIENT,
    steered=True,
)
async def greeted(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(context) as device:
            since = device.clock()
            _type(device, "你好小智")
            greeting = await device.messages.until(
                lambda: bool(device.messages.find("tts", "start", after=since)), _GREETING
            )
            if greeting:
                await answered(device, since)
            asked_at = device.clock()
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            await asyncio.sleep(1.0)
            count = len(device.messages.find("tts", "start", after=asked_at))
            require(count == 1, f"{count} answers to the command")
            return f"{'a greeting' if greeting else 'no greeting'}, then one answer"


def _type(device: ScriptedDevice, text: str) -> None:
    device.send({"session_id": device.session, "type": "listen", "state": "detect", "text": text})
