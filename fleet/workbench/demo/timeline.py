"""The timeline: rows for steps of the device and for lines of the server's log."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from fleet.workbench.local_servers.log_line import LogLine
from fleet.workbench.sim.records.journal import Step

_LONGEST_REASON = 160
_LONGEST_RESULT = 48
"""Characters, so that a tool call fits into one line of most terminals."""


class Actor(StrEnum):
    """The origin of a row."""

    USER = "user"
    DEVICE = "device"
    SERVER = "server"
    TOOL = "tool"
    DEMO = "demo"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the timeline; `note` is an additional remark, such as a duration."""

    actor: Actor
    text: str
    note: str = ""


def row_of_log(line: LogLine) -> Row | None:
    """Return the row of a log line; None for a line that the timeline does not show."""
    if line.level in ("warning", "error", "critical"):
        reason = line.text("reason") or line.text("traceback")[-_LONGEST_REASON:]
        return Row(Actor.PROBLEM, f"server: {line.message}", _cut(reason, _LONGEST_REASON))
    make = _OF_LOG.get(line.message)
    return make(line) if make else None


def row_of_step(step: Step) -> Row | None:
    """Return the row of a step of the device; None for a step that the timeline does not show."""
    make = _OF_STEP.get(step.name)
    return make(step.detail) if make else None


PROGRESS = {
    "utterance ended": "the server recognises the speech",
    "utterance recognised": "the model answers",
    "tool call": "the model answers",
    "first sentence": "the voice speaks the first sentence",
    "first audible": "the device plays the answer",
    "playback end": "the device listens",
}
"""The activity after a line of the log or a step of the device, by its name."""


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _recognised(line: LogLine) -> Row:
    return Row(
        Actor.SERVER, f"heard “{line.private('text')}”", f"{line.text('language')}, {ms(line.number('asr_seconds'))}"
    )


def _called(line: LogLine) -> Row:
    given = line.private("arguments")
    arguments = ", ".join(f"{name}={value}" for name, value in given.items()) if isinstance(given, dict) else ""
    result = line.private("result")
    shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    text = f"{line.text('tool')}({arguments}) → {line.text('outcome')}: {_cut(shown, _LONGEST_RESULT)}"
    return Row(Actor.TOOL, text, ms(line.number("seconds")))


def _discovered(line: LogLine) -> Row:
    return Row(
        Actor.SERVER, f"found {line.text('tools')} tools on {line.text('board')}, firmware {line.text('firmware')}"
    )


_OF_LOG: dict[str, Callable[[LogLine], Row]] = {
    "utterance recognised": _recognised,
    "tool called": _called,
    "tools discovered": _discovered,
    "barge-in": lambda _: Row(Actor.SERVER, "stops: the user speaks over the answer"),
}

Detail = Mapping[str, JsonValue]

_OF_STEP: dict[str, Callable[[Detail], Row]] = {
    "ota": lambda d: Row(Actor.DEVICE, f"bootstrap: MQTT at {d['endpoint']}, publishes to {d['topic']}"),
    "ota failed": lambda d: Row(Actor.PROBLEM, f"device: bootstrap failed: {d['reason']}"),
    "mqtt up": lambda d: Row(Actor.DEVICE, f"MQTT connected as {d['client_id']}"),
    "mqtt down": lambda d: Row(Actor.PROBLEM, f"device: MQTT lost: {d['reason']}"),
    "udp open": lambda d: Row(Actor.DEVICE, f"session open: audio to {d['server']}:{d['port']} by UDP, encrypted Opus"),
    "goodbye": lambda d: Row(Actor.DEVICE, f"session closed by the {d['by']}"),
    "sentence": lambda d: Row(Actor.SERVER, f"“{d['text']}”"),
    "alert": lambda d: Row(Actor.PROBLEM, f"device shows {d['status']}: {d['message']}"),
    "underrun": lambda d: Row(Actor.PROBLEM, "device: gap in the answer", f"{d['ms']} ms"),
    "violation": lambda d: Row(
        Actor.PROBLEM, f"device: the server broke a rule of the firmware: {d['rule']}", str(d["detail"])
    ),
}


def _cut(text: str, longest: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
