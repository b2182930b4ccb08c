"""The clients' side of the LLM Gateway WebSocket API: each frame becomes a typed request or a refusal; nothing raises.

Section numbers are those of the API's document. Where it contradicts itself, this reader is tolerant: empty or null
fields count as missing, unknown fields are ignored, and a `tool_result` may have no `success` (3.1 against 4.7).
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
"""Entries of one `register_tools`. The answer has one entry for each, so a longer message is refused as a whole."""

_LONGEST_SHOWN = 64


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The fields of the `error` message that refuses a request (5.4)."""

    code: ErrorCode
    message: str
    details: str = ""


_NO_JSON = RequestRefused("INVALID_MESSAGE", "Invalid JSON", "The frame is no JSON text")


@dataclass(frozen=True, slots=True)
class TextInput:
    """An utterance of the user; `session` is empty for the connection's own session."""

    text: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Configure:
    """Settings of the model; None leaves a setting unchanged. `stream` is an extension of fleet: answers in pieces."""

    temperature: float | None = None
    max_tokens: int | None = None
    enable_context: bool | None = None
    stream: bool | None = None


@dataclass(frozen=True, slots=True)
class StartSession:
    """Begins a new session, or continues the one that is named."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class EndSession:
    """Ends the connection's session; the connection stays open."""


@dataclass(frozen=True, slots=True)
class RegisterTools:
    """The client's tools: each as JSON for `unpack_tool`, or refused already."""

    tools: tuple[str | BadTool, ...]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a client's tool; `error` is its text if it failed."""

    call_id: str
    success: bool
    result: JsonValue = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for a `pong`."""


Request = TextInput | Configure | StartSession | EndSession | RegisterTools | ToolAnswer | Ping


def _whole(value: object) -> object:
    """Accept 2048.0 for 2048, because some encoders write it. A truth value becomes text, so that it is refused."""
    if isinstance(value, bool):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Truth = Annotated[bool, Field(strict=True)]
"""Only `true` and `false`: 1 and texts such as `no` have another type (4.2)."""


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
    """Parsed JSON without validation: validating each part takes longer than everything else."""


class _ToolResult(_Body):
    call_id: Annotated[str, Field(min_length=1)]
    result: Any = None
    success: bool | None = None
    error: Any = None


def receive(frame: str | bytes) -> Request | RequestRefused:
    """Return the request in a frame, or the refusal of a frame that is not a request."""
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
    """Whether a frame is JSON-RPC, the dialect of registrars on the same port; never raises."""
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
    """Return the place and the kind of the first fault; without the client's value, which may be private."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{kind}: {'.'.join(str(part) for part in fault['loc'][:1])}: {fault['msg']}"
