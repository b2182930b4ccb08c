"""Check a device's last session: did its audio arrive, was it recognised, was it answered?"""

from collections.abc import Callable, Iterator
from datetime import datetime

from fleet.adapters.redis.devices.view import DeviceView
from fleet.core.finding import Finding, ok, problem, skipped, warning
from fleet.core.silence import UNUSED_SECONDS
from fleet.ground.terminal import plural

_YOUNG = 5
"""Seconds after a hello in which missing audio is normal: edges write their traces once a second."""
_LONGEST_ANSWER = 90
"""Seconds from an utterance to the end of its answer."""

_UDP = (
    "UDP packets of this device do not reach the edge. Open the port in the firewall, the security group and the "
    "router. Set FLEET_UDP_PUBLIC to an address that the device's network reaches. `fleet doctor` tests it "
    "(audio.reach)"
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
        f"its first packets arrived {when(arrived.at)} from {arrived.words.partition(' ')[2]}{_counts(known)}",
        case="arrived",
    )
    hello, heard, understood = known.at("hello"), known.at("heard"), known.at("understood")
    if heard < hello:
        message = "audio arrives, but it has held no speech since the hello"
        advice = "Check that its microphone is on and that somebody speaks; the voice may be far too quiet"
        yield warning("device.speech", message, advice, case="none")
        return
    # Traces have whole seconds: the text of an utterance may seem to be a second older than its speech.
    recognised = understood >= heard - 1
    if not recognised and now.timestamp() - heard <= _YOUNG:
        yield skipped(
            "device.speech", f"there was speech {when(heard)}; its recognition may not be done yet", case="soon"
        )
        return
    if not recognised:
        advice = "Test recognition with `fleet doctor --only speech`. A noise can look like speech too"
        yield problem(
            "device.speech", f"there was speech {when(heard)}, but no text was recognised", advice, case="unclear"
        )
        return
    yield ok("device.speech", f"speech was recognised {when(understood)}", case="known")
    yield _answer(known, when, now)


def _no_audio(known: DeviceView, when: When, now: datetime) -> Finding:
    hello = known.at("hello")
    if known.session and now.timestamp() - hello < _YOUNG:
        return skipped("device.audio", "its hello is only seconds old", case="soon")
    bye = known.traces.get("goodbye")
    if bye is not None and not known.session and bye.at - hello < _YOUNG:
        return skipped("device.audio", f"its last session ended at once ({bye.words or 'unknown'})", case="brief")
    if bye is not None and not known.session and bye.words == "device" and bye.at - hello < UNUSED_SECONDS:
        return warning(
            "device.audio",
            f"it hung up {bye.at - hello} s after its hello, and no packet had arrived",
            _UDP,
            case="hung-up",
        )
    return problem("device.audio", f"no valid packet arrived since its hello {when(hello)}", _UDP, case="none")


def _counts(known: DeviceView) -> str:
    end = known.traces.get("end")
    session, _, counts = end.words.partition(" ") if end else ("", "", "")
    if session != known.last_session:
        return ""
    uplink, _, downlink = counts.partition(" ")
    return f"; in all, {plural(int(uplink or 0), 'packet')} from the device and {downlink} to it"


def _tokens(known: DeviceView) -> str:
    """Return the tokens of the last turn, which is known for ten minutes."""
    given, cached, written = (known.turn.get("tokens") or "0 0 0").split()
    return f"; tokens: {given} in ({cached} of them cached), {written} out" if given != "0" else ""


def _answer(known: DeviceView, when: When, now: datetime) -> Finding:
    understood, spoke = known.at("understood"), known.at("spoke")
    sorry = known.traces.get("sorry")
    if sorry is not None and sorry.at >= max(understood, spoke):
        advice = "Test the models with `fleet doctor --only llm,speech`. A worker's line `turn failed` has the reason"
        return problem(
            "device.answer",
            f"it got an apology {when(sorry.at)} instead of an answer ({sorry.words})",
            advice,
            case="sorry",
        )
    if known.turn.get("apology") and known.turn.get("state") != "running":
        advice = "Test the model with `fleet doctor --only llm`. A worker's line `turn failed` has the reason"
        return problem("device.answer", "the last answer was an apology", advice, case="sorry")
    if spoke >= understood:
        return ok("device.answer", f"an answer was spoken to its end {when(spoke)}{_tokens(known)}", case="spoken")
    if now.timestamp() - understood < _LONGEST_ANSWER:
        return ok("device.answer", "an answer is not over yet", case="soon")
    advice = f"The user or a goodbye cut it off, or it was lost: run `fleet devices debug {known.mac}`, then try again"
    return warning(
        "device.answer", f"no answer to the utterance of {when(understood)} was spoken to its end", advice, case="cut"
    )
