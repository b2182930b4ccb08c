"""Reading what the server sends as firmware's JSON parser does, and what firmware needs each message to hold."""

import json
import math
from collections.abc import Iterator

from pydantic import JsonValue

from fleet.workbench.sim.records.audit import Finding

JsonObject = dict[str, JsonValue]

LARGEST = 8192
DEEPEST = 10
SINGLE_FRAGMENT = 900
"""Bytes of topic and payload up to which a message surely arrives in one piece (contract 2.1)."""

EMOTIONS = frozenset(
    {
        *("neutral", "happy", "laughing", "funny", "sad", "angry", "crying", "loving", "embarrassed", "surprised"),
        *("shocked", "thinking", "winking", "cool", "relaxed", "delicious", "kissy", "confident", "sleepy", "silly"),
        "confused",
    }
)

_REQUIRED: dict[str, dict[str, type]] = {
    "hello": {"transport": str, "session_id": str, "udp": dict, "audio_params": dict},
    "tts": {"state": str},
    "stt": {"text": str},
    "llm": {"emotion": str},
    "alert": {"status": str, "message": str, "emotion": str},
    "system": {"command": str},
    "mcp": {"payload": dict},
    "goodbye": {"session_id": str},
}
_TTS_STATES = frozenset({"start", "sentence_start", "sentence_end", "stop"})
_OF_A_CONVERSATION = frozenset({"tts", "stt", "llm"})


def _first_wins(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    kept: JsonObject = {}
    folded: set[str] = set()
    for key, value in pairs:
        if key.lower() not in folded:
            folded.add(key.lower())
            kept[key] = value
    return kept


def parse(payload: bytes) -> JsonObject | None:
    """Return a message with a string `type`, or None for anything else."""
    try:
        message = json.loads(payload, object_pairs_hook=_first_wins)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and isinstance(item(message, "type"), str) else None


def item(source: JsonObject, name: str) -> JsonValue:
    """Return a member whatever its capitals, or None."""
    if name in source:
        return source[name]
    return next((value for key, value in source.items() if key.lower() == name.lower()), None)


def text(source: JsonObject, name: str) -> str | None:
    """Return a member if it is a string."""
    value = item(source, name)
    return value if isinstance(value, str) else None


def member(source: JsonObject, name: str) -> JsonObject:
    """Return a member if it is an object, else an empty one."""
    value = item(source, name)
    return value if isinstance(value, dict) else {}


def number(value: JsonValue) -> int | float | None:
    """Return a value if it is a finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def check(message: JsonObject, size: int, session: str) -> Iterator[Finding]:
    """Yield what a message lacks for firmware of any age.

    Args:
        message: What `parse` returned.
        size: Of the payload, in bytes.
        session: The live session's id, empty without one.
    """
    kind = text(message, "type") or ""
    if size > LARGEST:
        yield "json-size", f"{kind}: {size} bytes"
    if (depth := _depth(message)) > DEEPEST:
        yield "json-depth", f"{kind}: {depth} levels"
    for name, wanted in _REQUIRED.get(kind, {}).items():
        if not isinstance(item(message, name), wanted):
            yield "field-missing", f"{kind} without {name} ({wanted.__name__})"
    yield from _check_meaning(kind, message)
    named = item(message, "session_id")
    if kind in _OF_A_CONVERSATION and session and named and named != session:
        yield "session-foreign", f"{kind} of session {named!r}"


def _check_meaning(kind: str, message: JsonObject) -> Iterator[Finding]:
    state = text(message, "state")
    if kind == "tts" and state is not None and state not in _TTS_STATES:
        yield "tts-state", repr(state)
    if kind == "tts" and state == "sentence_start" and text(message, "text") is None:
        yield "field-missing", "sentence_start without text"
    emotion = text(message, "emotion")
    if kind == "llm" and emotion is not None and emotion not in EMOTIONS:
        yield "emotion-unknown", repr(emotion)


def _depth(value: JsonValue) -> int:
    deepest = 0
    level: list[JsonValue] = [value]
    while level:
        deepest += 1
        level = [inner for outer in level for inner in _members(outer)]
    return deepest


def _members(value: JsonValue) -> list[JsonValue]:
    """Return what a container holds that counts as a further level: containers only."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [entry for entry in inner if isinstance(entry, dict | list)]
