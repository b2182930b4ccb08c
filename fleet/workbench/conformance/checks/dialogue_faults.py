"""Group S, continued: models that fail, and messages that are broken."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from fleet.workbench.conformance.checks.dialogue import GROUP, WOKEN
from fleet.workbench.conformance.checks.dialogue_ends import UNKNOWN
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Round
from fleet.workbench.conformance.talk import REPLY_SECONDS, ask, finish, press, talking, understood, until_speaking
from fleet.workbench.conformance.verdict import Failed, require
from fleet.workbench.sim.messages.message import EMOTIONS
from fleet.workbench.sim.messages.outbound import detect
from fleet.workbench.sim.scripted.device import ScriptedDevice

_SAID = 1.0
_LONGEST = 30.0
_QUIET = 3.0
_STUCK = 15.0


@GROUP.check("S16", "every message has the form that firmware of any age needs", steered=True)
async def formed(context: CheckContext) -> str:
    with context.monologue(8.0) as scene, context.scene(rounds=(Round(fault="status 500"),)) as bad:
        async with talking(context) as device:
            await until_speaking(device, scene)
            sent = device.clock()
            device.abort()
            await device.messages.expect("tts", "stop", seconds=5, after=sent)
            await press(device)
            device.microphone.say(voice.say(bad.mark, _SAID))
            await finish(device)
            await _settled(device, sent)
            device.send({"session_id": UNKNOWN, "type": "listen", "state": "start", "mode": device.profile.mode})
            await device.messages.expect("goodbye", seconds=3, after=sent)
            require(not device.findings, "; ".join(f"{rule}: {detail}" for rule, detail in device.findings))
            counts = Counter(one.kind for one in device.messages.all)
            emotions = {str(one["emotion"]) for one in device.messages.find("llm")}
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
async def failing(context: CheckContext) -> str:
    found: dict[str, str] = {}

    async def one(trouble: _Trouble) -> None:
        try:
            found[trouble.name] = await _survive(context, trouble)
        except Failed as error:
            raise Failed(f"{trouble.name}: {error}") from error

    try:
        async with asyncio.TaskGroup() as group:
            for trouble in _TROUBLES:
                group.create_task(one(trouble), name=trouble.name)
    except* Failed as errors:
        raise Failed("; ".join(str(error) for error in errors.exceptions)) from errors
    return "; ".join(f"{trouble.name}: {found[trouble.name]}" for trouble in _TROUBLES)


async def _survive(context: CheckContext, trouble: _Trouble) -> str:
    with context.scene(**trouble.script) as bad, context.scene(reply_seconds=REPLY_SECONDS) as good:
        async with talking(context) as device:
            await press(device)
            device.microphone.say(voice.say(bad.mark, _SAID))
            since = await finish(device)
            await _settled(device, since)
            pairs, alerts = (
                len(device.messages.find("tts", "stop", after=since)),
                len(device.messages.find("alert", after=since)),
            )
            took = max((one.at for one in device.messages.find("tts", "stop", after=since)), default=since) - since
            understood(await ask(device, voice.say(good.mark, _SAID)), good)
            return f"told in {took:.1f} s" if pairs else "alert" if alerts else "nothing told"


async def _settled(device: ScriptedDevice, since: float) -> None:
    """Wait until a message reports the fault to the device, or long enough; it must not be speaking then.

    Raises:
        Failed: It is left speaking.
    """

    def told() -> bool:
        ended = device.messages.find("tts", "stop", after=since) or device.messages.find("alert", after=since)
        return bool(ended) and not device.speaking

    if await device.messages.until(told, _STUCK):
        # A fallback may follow what was cut short.
        await asyncio.sleep(_QUIET)
    await device.messages.until(lambda: not device.speaking, _LONGEST - _STUCK)
    require(not device.speaking, f"the device is left speaking for {device.clock() - since:.0f} s")


@GROUP.check("S18", "an empty answer of the chat model leaves nothing behind, and the next turn works", steered=True)
async def empty(context: CheckContext) -> str:
    with (
        context.scene(rounds=(Round(""),)) as nothing,
        context.scene(reply_seconds=REPLY_SECONDS) as scene,
    ):
        async with talking(context) as device:
            since = device.clock()
            await press(device)
            device.microphone.say(voice.say(nothing.mark, _SAID))
            await finish(device)
            await device.messages.expect("stt", seconds=10, after=since)
            await asyncio.sleep(4.0)
            await device.messages.until(lambda: not device.speaking, 5.0)
            starts, stops = (len(device.messages.find("tts", state, after=since)) for state in ("start", "stop"))
            require(starts <= stops, f"{starts} × `tts start` and {stops} × `tts stop`")
            count = len(device.audio.since(since))
            require(not starts or count, "`tts start` and `tts stop` without any audio between")
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            return f"{starts} × `tts start`, {stops} × `tts stop`, {count} datagrams; the next turn was answered"


@GROUP.check("S19", "a wake word that breaks the message's JSON does no harm", profiles=WOKEN, steered=True)
async def broken(context: CheckContext) -> str:
    with context.scene(reply_seconds=REPLY_SECONDS) as scene:
        async with context.scripted_device() as device:
            await device.hello()
            for text in ('say "hi"', "hi\nthere", "\\", '"}'):
                device.send(detect(device.session, text))
            device.send(detect(device.session, "x").encode().replace(b'"x"', b'"\xff\xfe"'))
            device.listen()
            await asyncio.sleep(0.5)
            understood(await ask(device, voice.say(scene.mark, _SAID)), scene)
            require(not device.messages.find("goodbye"), "the server said goodbye")
            return "the session lives on after 5 broken messages"
