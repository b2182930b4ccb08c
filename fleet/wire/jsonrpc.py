"""JSON-RPC 2.0 of devices: ids return as numbers or strings, errors often have no code."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from fleet.wire.json_text import has_levels
from fleet.wire.messages import DeviceEvent, IgnoredEvent, MalformedEvent, NotificationEvent, ResponseEvent

NOT_JSON, INVALID_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
"""The codes of JSON-RPC 2.0."""
SERVER_ERROR = -32000
"""The first of the codes that JSON-RPC reserves for errors of servers."""

LARGEST_ID = 2**31 - 1
"""Firmware reads ids as int32."""

LONGEST_ID = 32
DEEPEST = 400
"""Levels of a message; deeper ones could exhaust the stack when they are encoded."""
_NO_TEXT = "the device reported an error without a text"


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: Any = None
    method: str | None = None
    params: Any = None
    result: Any = None
    error: Any = None


def receive(payload: JsonValue) -> DeviceEvent:
    """Return the event of a device's JSON-RPC message."""
    try:
        message = _Message.model_validate(payload)
    except ValidationError:
        return MalformedEvent("bad JSON-RPC")
    if not has_levels(payload, DEEPEST):
        return MalformedEvent("nested too deeply")
    if message.method is not None:
        if message.id is None or message.method.startswith("notifications"):
            return NotificationEvent(message.method, message.params)
        return IgnoredEvent("JSON-RPC request")
    request_id = message.id
    if isinstance(request_id, bool) or not isinstance(request_id, int | float | str):
        return MalformedEvent("JSON-RPC answer without id")
    if message.error is not None and message.error is not False:
        return ResponseEvent(id_text(request_id), error=error_text(message.error))
    return ResponseEvent(id_text(request_id), result=message.result)


def id_text(request_id: float | str) -> str:
    """Return an id as text; a device may return the number 7 as 7, 7.0 or "7"."""
    name = str(int(request_id)) if isinstance(request_id, float) and request_id.is_integer() else str(request_id)
    return name[:LONGEST_ID]


def error_text(error: JsonValue) -> str:
    """Return the text of an error object, of a bare text, or of any other value that a device sends as error."""
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str):
        return error.strip() or _NO_TEXT
    return json.dumps(error, ensure_ascii=False) if error and error is not True else _NO_TEXT


def request(request_id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}


def notification(method: str) -> dict[str, Any]:
    """Return a notification; without `params`, because firmware drops a message whose `params` is null."""
    return {"jsonrpc": "2.0", "method": method}
