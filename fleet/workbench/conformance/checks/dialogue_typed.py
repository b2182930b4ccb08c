"""Group S, continued: what is typed into the text box of py-xiaozhi, which comes as a `detect`."""

import asyncio

from fleet.workbench.conformance.checks.dialogue import GROUP
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage, answered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import require

_CLIENT = "P8"
_SAID = 1.0
_GREETING = 1.5


@GROUP.check(
    "S24",
    "a question that is typed while it listens is shown and answered as a spoken one",
    profiles=_CLIENT,
    steered=True,
)
async def asked(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            text = f'scene {scene.mark}: "what"\n现在几点了？'
            since = probe.clock()
            _type(probe, text)
            answer = await answered(probe, since)
            understood(answer, scene)
            shown = str(answer.heard["text"]) if answer.heard else ""
            require(shown == text, f"`stt` shows {shown!r} for {text!r}")
            early = [one for one in probe.mail.find("tts", "stop", after=since) if one.at < answer.start.at]
            require(not early, "`tts stop` before the answer: this client then stops to record")
            return f"answered {answer.start.at - since:.1f} s after it was typed"


@GROUP.check("S25", "a question that is typed over an answer ends it and is answered", profiles=_CLIENT, steered=True)
async def interrupted(stage: Stage) -> str:
    with stage.monologue(8.0) as first, stage.scene(reply_seconds=REPLY_SECONDS) as second:
        async with talking(stage) as probe:
            await until_speaking(probe, first, 1.0)
            since = probe.clock()
            probe.abort()
            _type(probe, f"scene {second.mark}: and now?")
            await probe.mail.expect("tts", "stop", seconds=2.0, after=since)
            understood(await answered(probe, since), second)
            return "the first answer ended, the second was spoken"


@GROUP.check(
    "S26",
    "a wake word that is typed gets a greeting or nothing, and what follows one answer",
    profiles=_CLIENT,
    steered=True,
)
async def greeted(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with talking(stage) as probe:
            since = probe.clock()
            _type(probe, "你好小智")
            greeting = await probe.mail.until(lambda: bool(probe.mail.find("tts", "start", after=since)), _GREETING)
            if greeting:
                await answered(probe, since)
            asked_at = probe.clock()
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            await asyncio.sleep(1.0)
            count = len(probe.mail.find("tts", "start", after=asked_at))
            require(count == 1, f"{count} answers to the command")
            return f"{'a greeting' if greeting else 'no greeting'}, then one answer"


def _type(probe: Probe, text: str) -> None:
    probe.send({"session_id": probe.session, "type": "listen", "state": "detect", "text": text})
