"""A device's last conversation: did its audio arrive, was it understood, was it answered?"""

from collections.abc import Callable, Iterator
from datetime import datetime

from fleet.adapters.redis.devices.view import DeviceView
from fleet.operations.doctor.finding import Finding, ok, problem, skipped, warning

_YOUNG = 5
"""Seconds after a hello in which there need not be audio yet; edges write once a second."""
_LONGEST_ANSWER = 90
"""Seconds from what was said to the end of its answer."""

_UDP = (
    "UDP does not get through between this device and the edge: is the port open in the firewall, the "
    "security group and "
    "the router? Is the address in hello (FLEET_UDP_PUBLIC) one that its network reaches? `fleet doctor` "
    "tries it (audio.reach)"
)

When = Callable[[int], str]


def examine_audio(known: DeviceView, when: When, now: datetime) -> Iterator[Finding]:
    """Yield the findings after the hello: audio, speech, answer."""
    arrived = known.traces.get("audio")
    if arrived is None or not arrived.words.startswith(known.last_session):
        yield _no_audio(known, when, now)
        return
    yield ok(
        "device.audio",
        f"its first packets came {when(arrived.at)} from {arrived.words.partition(' ')[2]}{_counts(known)}",
    )
    hello, heard, understood = known.at("hello"), known.at("heard"), known.at("understood")
    if heard < hello:
        message = "audio comes, but nobody was heard to speak since its hello"
        yield warning(
            "device.speech", message, "Is its microphone on, and does somebody speak? It may be far too quiet"
        )
        return
    if understood < heard - 1 and (now.timestamp() - heard) > _YOUNG:
        advice = "Try recognition: `fleet doctor --only speech`; a noise that is no speech looks the same"
        yield problem("device.speech", f"somebody spoke {when(heard)}, and nothing was understood", advice)
        return
    yield ok("device.speech", f"somebody was understood {when(understood or heard)}")
    yield _answer(known, when, now)


def _no_audio(known: DeviceView, when: When, now: datetime) -> Finding:
    hello = known.at("hello")
    if known.session and now.timestamp() - hello < _YOUNG:
        return skipped("device.audio", "its hello is seconds old")
    bye = known.traces.get("goodbye")
    if bye is not None and not known.session and bye.at - hello < _YOUNG:
        return skipped("device.audio", f"its last conversation ended at once ({bye.words or 'unknown'})")
    return problem("device.audio", f"since its hello {when(hello)} no packet came that could be read", _UDP)


def _counts(known: DeviceView) -> str:
    end = known.traces.get("end")
    session, _, counts = end.words.partition(" ") if end else ("", "", "")
    if session != known.last_session:
        return ""
    uplink, _, downlink = counts.partition(" ")
    return f"; in all {uplink} packets of its own, and {downlink} sent to it"


def _answer(known: DeviceView, when: When, now: datetime) -> Finding:
    understood, spoke = known.at("understood"), known.at("spoke")
    sorry = known.traces.get("sorry")
    if sorry is not None and sorry.at >= max(understood, spoke):
        advice = "Try the models: `fleet doctor --only llm,speech`; a worker's line `turn failed` names the reason"
        return problem(
            "device.answer", f"it got an apology {when(sorry.at)} instead of an answer ({sorry.words})", advice
        )
    if known.turn.get("apology") and known.turn.get("state") != "running":
        advice = "Try the model: `fleet doctor --only llm`; a worker's line `turn failed` names the reason"
        return problem("device.answer", "the last answer was an apology", advice)
    if spoke >= understood:
        return ok("device.answer", f"an answer was spoken to its end {when(spoke)}")
    if now.timestamp() - understood < _LONGEST_ANSWER:
        return ok("device.answer", "an answer is on its way")
    advice = (
        f"It was cut off (by the user, or a goodbye), or is lost: `fleet devices debug {known.mac}`, then try again"
    )
    return warning(
        "device.answer", f"what was said {when(understood)} has no answer that was spoken to its end", advice
    )
