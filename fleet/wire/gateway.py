"""The LLM Gateway WebSocket API, what clients say: a frame in, a typed request or a refusal out; nothing is raised.

The clauses are those of the API's document. Where it contradicts itself the tolerant reading is taken: empty or null
fields count as absent, unknown ones are ignored, and `success` of a `tool_result` may be missing (3.1 against 4.7).
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from fleet.wire.gateway_tools import BadTool, pack_tools
from fleet.wire.json_text import MOST_VALUES, has_too_many_values, is_finite

ErrorCode = Literal[
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
]
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
"""All codes of section 5.4."""
LARGEST_FRAME = 1024 * 1024
"""Bytes of a message (section 12.1)."""
MOST_TOOLS_AT_ONCE = 256
"""Entries of one `register_tools` that are looked at: each of them is answered."""

_LONGEST_SHOWN = 64


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """Why something is not done, as the client is told: code, message, details."""

    code: ErrorCode
    message: str
    details: str = ""


_NO_JSON = RequestRefused("INVALID_MESSAGE", "Invalid JSON", "The frame is no JSON text")


@dataclass(frozen=True, slots=True)
class TextInput:
    """The user said something; `session` is empty for the connection's own."""

    text: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Configure:
    """Settings of the model; None leaves one as it is. `stream` is fleet's own: the answer comes in pieces."""

    temperature: float | None = None
    max_tokens: int | None = None
    enable_context: bool | None = None
    stream: bool | None = None


@dataclass(frozen=True, slots=True)
class StartSession:
    """Begins a new session, or goes on with an earlier one."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class EndSession:
    """Ends the connection's session, but not the connection."""


@dataclass(frozen=True, slots=True)
class RegisterTools:
    """The tools that the client has, each as JSON for `unpack_tool`, or refused already."""

    tools: tuple[str | BadTool, ...]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a client's tool returned; `error` is its text when it failed."""

    call_id: str
    success: bool
    result: JsonValue = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for a `pong`."""


Request = TextInput | Configure | StartSession | EndSession | RegisterTools | ToolAnswer | Ping


def _whole(value: object) -> object:
    """Take 2048.0 for 2048, which some encoders write, but no truth value for a number."""
    if isinstance(value, bool):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Truth = Annotated[bool, Field(strict=True)]
"""No 1, and no text such as `no`: both are another type (4.2)."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _TextInput(_Body):
    text: str
    session_id: str | None = None


class _Configure(_Body):
    temperature: Annotated[float, Field(strict=True, ge=0.0, le=1.0)] | None = None
    max_tokens: Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=1)] | None = None
    enable_context: _Truth | None = None
    stream: _Truth | None = None


class _StartSession(_Body):
    session_id: str | None = None


class _RegisterTools(_Body):
    tools: list[Any]
    """JSON, as it was read from it: to look at each of its parts once more takes longer than all the rest."""


class _ToolResult(_Body):
    call_id: Annotated[str, Field(min_length=1)]
    result: Any = None
    success: bool | None = None
    error: Any = None


def receive(frame: str | bytes) -> Request | RequestRefused:
    """Return what a frame asks for, or why it cannot be understood."""
    if has_too_many_values(frame):
        return RequestRefused("INVALID_MESSAGE", "Invalid message", f"A message may hold {MOST_VALUES} values")
    try:
        body = from_json(frame, allow_inf_nan=False)
    except ValueError:
        return _NO_JSON
    if not is_finite(body):
        return _NO_JSON
    if not isinstance(body, dict):
        return RequestRefused("INVALID_MESSAGE", "Invalid message", "A message is a JSON object")
    kind = body.get("type")
    if not isinstance(kind, str):
        return RequestRefused("INVALID_MESSAGE", "Missing message type", "The field type is missing or no text")
    try:
        return _read(kind, body)
    except ValidationError as error:
        return RequestRefused("INVALID_MESSAGE", "Invalid message", _explain(kind, error))


def is_jsonrpc(frame: str | bytes) -> bool:
    """Whether a frame is JSON-RPC, which another dialect on the same port speaks; never raises."""
    if has_too_many_values(frame):
        return False
    try:
        body = from_json(frame)
    except (ValueError, RecursionError):
        return False
    first = body[0] if isinstance(body, list) and body else body
    return isinstance(first, dict) and "jsonrpc" in first


def _read(kind: str, body: dict[str, JsonValue]) -> Request | RequestRefused:
    match kind:
        case "text_input":
            return _text_input(_TextInput.model_validate(body))
        case "configure":
            return Configure(**_Configure.model_validate(body).model_dump())
        case "start_session":
            return StartSession(_StartSession.model_validate(body).session_id or "")
        case "end_session":
            return EndSession()
        case "register_tools":
            return _register_tools(_RegisterTools.model_validate(body))
        case "tool_result":
            return _tool_answer(_ToolResult.model_validate(body))
        case "ping":
            return Ping()
        case _:
            shown = kind[:_LONGEST_SHOWN]
            return RequestRefused("UNKNOWN_MESSAGE_TYPE", "Unknown message type", f"There is no message type {shown!r}")


def _text_input(body: _TextInput) -> TextInput | RequestRefused:
    if not body.text.strip():
        return RequestRefused("INVALID_MESSAGE", "Text cannot be empty", "text_input needs a text")
    return TextInput(body.text, body.session_id or "")


def _register_tools(body: _RegisterTools) -> RegisterTools | RequestRefused:
    if len(body.tools) > MOST_TOOLS_AT_ONCE:
        details = f"One message may define {MOST_TOOLS_AT_ONCE} tools, not {len(body.tools)}"
        return RequestRefused("TOOL_REGISTRATION_FAILED", "Too many tools", details)
    return RegisterTools(pack_tools(body.tools))


def _tool_answer(body: _ToolResult) -> ToolAnswer:
    success = body.error in (None, "", False) if body.success is None else body.success
    return ToolAnswer(body.call_id, success, body.result, _error_text(body.error))


def _error_text(error: JsonValue) -> str:
    if error in (None, "", False):
        return ""
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _explain(kind: str, error: ValidationError) -> str:
    """Return where the first fault is and what it is, without what the client wrote there."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{kind}: {'.'.join(str(part) for part in fault['loc'][:1])}: {fault['msg']}"
