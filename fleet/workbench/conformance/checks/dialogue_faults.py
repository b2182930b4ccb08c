"""Group S, continued: models that fail, and messages that are broken."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from fleet.workbench.conformance.checks.dialogue import GROUP, WOKEN
from fleet.workbench.conformance.checks.dialogue_ends import UNKNOWN
from fleet.workbench.conformance.probe.probe import Probe
from fleet.workbench.conformance.stage import Stage
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, finish, press, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.messages.message import EMOTIONS
from fleet.workbench.sim.messages.outbound import detect

_SAID = 1.0
_LONGEST = 30.0
_QUIET = 3.0
_STUCK = 15.0


@GROUP.check("S16", "every message has the form that firmware of any age needs", steered=True)
async def formed(stage: Stage) -> str:
    with stage.monologue(8.0) as scene, stage.scene(rounds=(Round(fault="status 500"),)) as bad:
        async with talking(stage) as probe:
            await until_speaking(probe, scene)
            sent = probe.clock()
            probe.abort()
            await probe.mail.expect("tts", "stop", seconds=5, after=sent)
            await press(probe)
            probe.microphone.say(voice.say(bad.mark, _SAID))
            await finish(probe)
            await _settled(probe, sent)
            probe.send({"session_id": UNKNOWN, "type": "listen", "state": "start", "mode": probe.profile.mode})
            await probe.mail.expect("goodbye", seconds=3, after=sent)
            require(not probe.findings, "; ".join(f"{rule}: {detail}" for rule, detail in probe.findings))
            counts = Counter(one.kind for one in probe.mail.messages)
            emotions = {str(one["emotion"]) for one in probe.mail.find("llm")}
            require(emotions <= EMOTIONS, f"emotions {', '.join(sorted(emotions - EMOTIONS))}")
            return ", ".join(f"{count} × {kind}" for kind, count in sorted(counts.items()))


@dataclass(frozen=True, slots=True)
class _Trouble:
    name: str
    script: dict[str, Any]


_TROUBLES = (
    _Trouble("recognition fails", {"asr": "error"}),
    _Trouble("recognition hangs", {"asr": "silent"}),
    _Trouble("the chat model fails", {"rounds": (Round(fault="status 500"),)}),
    _Trouble("the chat model hangs", {"rounds": (Round(fault="silent"),)}),
    _Trouble(
        "the chat model breaks off", {"rounds": (Round("This answer is not", fault="breaks off after 2 pieces"),)}
    ),
    _Trouble("the voice fails", {"voice": "error"}),
    _Trouble("the voice hangs", {"voice": "silent"}),
)


@GROUP.check(
    "S17", "when a model fails the device is not left speaking, and the next turn works", steered=True, seconds=90
)
async def failing(stage: Stage) -> str:
    found: dict[str, str] = {}

    async def one(trouble: _Trouble) -> None:
        try:
            found[trouble.name] = await _survive(stage, trouble)
        except Failed as error:
            raise Failed(f"{trouble.name}: {error}") from error

    try:
        async with asyncio.TaskGroup() as group:
            for trouble in _TROUBLES:
                group.create_task(one(trouble), name=trouble.name)
    except* Failed as errors:
        raise Failed("; ".join(str(error) for error in errors.exceptions)) from errors
    return "; ".join(f"{trouble.name}: {found[trouble.name]}" for trouble in _TROUBLES)


async def _survive(stage: Stage, trouble: _Trouble) -> str:
    with stage.scene(**trouble.script) as bad, stage.scene(reply_seconds=REPLY_SECONDS) as good:
        async with talking(stage) as probe:
            await press(probe)
            probe.microphone.say(voice.say(bad.mark, _SAID))
            since = await finish(probe)
            await _settled(probe, since)
            pairs, alerts = len(probe.mail.find("tts", "stop", after=since)), len(probe.mail.find("alert", after=since))
            took = max((one.at for one in probe.mail.find("tts", "stop", after=since)), default=since) - since
            understood(await ask(probe, voice.say(good.mark, _SAID)), good)
            return f"told in {took:.1f} s" if pairs else "alert" if alerts else "nothing told"


async def _settled(probe: Probe, since: float) -> None:
    """Wait until the device was told something about a fault, or long enough; it must not be speaking then.

    Raises:
        Failed: It is left speaking.
    """

    def told() -> bool:
        ended = probe.mail.find("tts", "stop", after=since) or probe.mail.find("alert", after=since)
        return bool(ended) and not probe.speaking

    if await probe.mail.until(told, _STUCK):
        # A fallback may follow what was cut short.
        await asyncio.sleep(_QUIET)
    await probe.mail.until(lambda: not probe.speaking, _LONGEST - _STUCK)
    require(not probe.speaking, f"the device is left speaking for {probe.clock() - since:.0f} s")


@GROUP.check("S18", "an empty answer of the chat model leaves nothing behind, and the next turn works", steered=True)
async def empty(stage: Stage) -> str:
    with (
        stage.scene(rounds=(Round(""),)) as nothing,
        stage.scene(reply_seconds=REPLY_SECONDS) as scene,
    ):
        async with talking(stage) as probe:
            since = probe.clock()
            await press(probe)
            probe.microphone.say(voice.say(nothing.mark, _SAID))
            await finish(probe)
            await probe.mail.expect("stt", seconds=10, after=since)
            await asyncio.sleep(4.0)
            await probe.mail.until(lambda: not probe.speaking, 5.0)
            starts, stops = (len(probe.mail.find("tts", state, after=since)) for state in ("start", "stop"))
            require(starts <= stops, f"{starts} × `tts start` and {stops} × `tts stop`")
            count = len(probe.audio.since(since))
            require(not starts or count, "`tts start` and `tts stop` without any audio between")
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            return f"{starts} × `tts start`, {stops} × `tts stop`, {count} datagrams; the next turn was answered"


@GROUP.check("S19", "a wake word that breaks the message's JSON does no harm", profiles=WOKEN, steered=True)
async def broken(stage: Stage) -> str:
    with stage.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with stage.probe() as probe:
            await probe.hello()
            for text in ('say "hi"', "hi\nthere", "\\", '"}'):
                probe.send(detect(probe.session, text))
            probe.send(detect(probe.session, "x").encode().replace(b'"x"', b'"\xff\xfe"'))
            probe.listen()
            await asyncio.sleep(0.5)
            understood(await ask(probe, voice.say(scene.mark, _SAID)), scene)
            require(not probe.mail.find("goodbye"), "the server said goodbye")
            return "the session lives on after 5 broken messages"
