"""What firmware up to 2.3.0 reads without looking whether it is there: a null pointer, and a restart (contract 8.1)."""

import json

from pydantic import JsonValue

from fleet.workbench.sim.messages.message import JsonObject, item, member, text

_HELLO_TEXTS = ("server", "key", "nonce")


def crash_reason(payload: bytes) -> str | None:
    """Return what makes old firmware crash in a message, or None."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return _dereferenced(message) if isinstance(message, dict) else None


def _dereferenced(message: JsonObject) -> str | None:
    kind: JsonValue = item(message, "type")
    if kind is None and not any(key.lower() == "type" for key in message):
        return None
    if not isinstance(kind, str):
        return "`type` is no string"
    if kind == "tts" and text(message, "state") is None:
        return "tts without state"
    return _hello(message) if kind == "hello" else None


def _hello(message: JsonObject) -> str | None:
    if text(message, "transport") is None:
        return "hello without transport"
    if text(message, "transport") != "udp" or not isinstance(item(message, "udp"), dict):
        return None
    udp = member(message, "udp")
    missing = [name for name in _HELLO_TEXTS if text(udp, name) is None]
    if item(udp, "port") is None:
        missing.append("port")
    return f"hello without udp.{missing[0]}" if missing else None
