"""What each message of a gateway must look like, field by field (sections 5.1 to 5.6 of the LLM Gateway API)."""

import re
from typing import Any

Message = dict[str, Any]

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}(Z|[+-]\d\d:\d\d)")
STATUSES = {"connected", "processing", "waiting_for_tools", "idle"}
CODES = {
    "INVALID_MESSAGE",
    "UNKNOWN_MESSAGE_TYPE",
    "LLM_ERROR",
    "SESSION_ERROR",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "TOOL_NOT_FOUND",
    "TOOL_EXECUTION_FAILED",
    "INVALID_TOOL_PARAMETERS",
    "TOOL_RESULT_TIMEOUT",
    "TOOL_REGISTRATION_FAILED",
}
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "status": {"status": str, "data": dict},
    "llm_response": {"content": str, "tool_calls": list, "is_final": bool},
    "tool_call": {"tool_name": str, "arguments": dict, "result": dict, "success": bool, "duration_ms": (int, float)},
    "tool_callback": {"call_id": str, "tool_name": str, "arguments": dict},
    "tools_registered": {"count": int, "tools": list},
    "error": {"code": str, "message": str, "details": str},
    "pong": {},
}
_STATUS_DATA: dict[str, dict[str, type]] = {
    "connected": {"session_id": str},
    "processing": {"message": str},
    "waiting_for_tools": {"pending_tools": int},
    "idle": {},
}


def faults(message: Message) -> list[str]:
    """Return what is wrong with a server's message."""
    kind = message.get("type")
    if kind not in _FIELDS:
        return [f"unknown type {kind!r}"]
    found = _missing(message, _FIELDS[kind])
    if not isinstance(message.get("timestamp"), str) or not _ISO.fullmatch(message["timestamp"]):
        found.append(f"timestamp {message.get('timestamp')!r}")
    if not found and kind == "status":
        found = _missing(message["data"], _STATUS_DATA.get(message["status"], {"a known status": str}))
    if not found and kind == "error" and message["code"] not in CODES:
        found.append(f"code {message['code']!r}")
    if not found and kind == "tools_registered":
        found = _tools(message)
    return found


def _missing(values: Message, fields: dict[str, Any]) -> list[str]:
    return [
        f"{name} is {values.get(name)!r}" for name, kind in fields.items() if not isinstance(values.get(name), kind)
    ]


def _tools(message: Message) -> list[str]:
    registered = [tool for tool in message["tools"] if tool.get("status") == "registered"]
    failed = [tool for tool in message["tools"] if tool.get("status") == "failed"]
    found = [f"{tool} has no error" for tool in failed if not isinstance(tool.get("error"), str) or not tool["error"]]
    if len(registered) != message["count"] or len(registered) + len(failed) != len(message["tools"]):
        found.append(f"count {message['count']} of {message['tools']}")
    return found
