"""Calls of tools of devices, texts for them, and what they remember."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fleet.client.call import Call
from fleet.wire.control.calls import (
    FactChoice,
    FactList,
    Forgotten,
    SayRequest,
    ToolCallRequest,
    ToolCallState,
    TurnRequest,
    TurnState,
)
from fleet.wire.control.talks import TalkTicket

_LATE = 30.0
"""Seconds that an answer may come after the wait that it was asked for."""


def call(
    mac: str, tool: str, arguments: Mapping[str, Any], *, wait: float = 0, within: int = 60
) -> Call[ToolCallState]:
    """Call a tool; the answer may be a call that has not ended."""
    path = f"{_path(mac)}/tools/{quote(tool, safe='')}:call"
    body = ToolCallRequest(arguments=dict(arguments), within=within)
    return Call("POST", path, ToolCallState, {"wait": wait}, body, seconds=wait + _LATE)


def read_call(mac: str, name: str) -> Call[ToolCallState]:
    """Read a call."""
    return Call("GET", f"{_path(mac)}/calls/{quote(name, safe='')}", ToolCallState)


def turn(mac: str, request: TurnRequest, wait: float = 0) -> Call[TurnState]:
    """Let the device's agent answer a text."""
    return Call("POST", f"{_path(mac)}/turns", TurnState, {"wait": wait}, request, seconds=wait + _LATE)


def say(mac: str, request: SayRequest, wait: float = 0) -> Call[TurnState]:
    """Let the device speak a text."""
    return Call("POST", f"{_path(mac)}:say", TurnState, {"wait": wait}, request, seconds=wait + _LATE)


def begin_talk() -> Call[TalkTicket]:
    """Return a ticket with which a page is the device of this token."""
    return Call("POST", "/talks", TalkTicket)


def facts(mac: str) -> Call[FactList]:
    """Read what a device remembers."""
    return Call("GET", f"{_path(mac)}/memory", FactList)


def forget(mac: str, chosen: Sequence[str]) -> Call[Forgotten]:
    """Delete single facts."""
    return Call("POST", f"{_path(mac)}/memory:forget", Forgotten, body=FactChoice(facts=list(chosen)))


def clear(mac: str) -> Call[Forgotten]:
    """Delete all facts of a device."""
    return Call("DELETE", f"{_path(mac)}/memory", Forgotten)


def _path(mac: str) -> str:
    return f"/devices/{quote(mac, safe=':')}"
