"""JSON-RPC 2.0 as devices speak it: ids come back as numbers or strings, errors often have no code."""

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from fleet.wire.words import Answer, Event, Malformed, Notice

LARGEST_ID = 2**31 - 1
"""Firmware reads ids as int32."""


class _Error(BaseModel):
    model_config = ConfigDict(extra="ignore")
    code: int | float | str | None = None
    message: JsonValue = None


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: int | float | str | None = None
    method: str | None = None
    params: JsonValue = None
    result: JsonValue = None
    error: _Error | str | None = None


def receive(payload: JsonValue) -> Event:
    """Return what a JSON-RPC message from a device says."""
    try:
        message = _Message.model_validate(payload)
    except (ValidationError, RecursionError):
        return Malformed("bad JSON-RPC")
    if message.method is not None:
        return Notice(message.method, message.params)
    if message.id is None or isinstance(message.id, bool):
        return Malformed("JSON-RPC answer without id")
    if message.error is not None:
        return Answer(_name(message.id), error=_error_text(message.error))
    return Answer(_name(message.id), result=message.result)


def _name(number: float | str) -> str:
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def _error_text(error: _Error | str) -> str:
    text = error if isinstance(error, str) else error.message
    return text if isinstance(text, str) and text else "the device reported an error without a text"


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


def notification(method: str) -> dict[str, Any]:
    """Return a notification; without `params`, because firmware drops a message whose `params` is null."""
    return {"jsonrpc": "2.0", "method": method}
