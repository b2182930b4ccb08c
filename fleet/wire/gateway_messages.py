"""The server's side of the LLM Gateway WebSocket API: typed messages in the document's form.

Section numbers are those of the API's document.
"""

import json
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic_core import PydanticSerializationError, to_json

from fleet.wire.gateway import ErrorCode

StatusName = Literal["connected", "processing", "waiting_for_tools", "idle"]
PROCESSING = "正在处理您的请求..."
"""The document's text for this status (5.1)."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Status(_Message):
    """The state of the connection (5.1)."""

    type: Literal["status"] = "status"
    status: StatusName
    data: dict[str, JsonValue]


class LlmResponse(_Message):
    """The answer, cleaned for speech (5.2). Pieces that are not final are sent only to clients that set `stream`."""

    type: Literal["llm_response"] = "llm_response"
    content: str
    tool_calls: list[dict[str, JsonValue]] = []
    is_final: bool = True


class ToolCallDone(_Message):
    """The result of a tool of the server (5.3)."""

    type: Literal["tool_call"] = "tool_call"
    tool_name: str
    arguments: dict[str, JsonValue]
    result: dict[str, JsonValue]
    success: bool
    duration_ms: float


class ToolCallback(_Message):
    """Asks the client to run one of its tools (5.4); `tool_name` is the name that the client registered."""

    type: Literal["tool_callback"] = "tool_callback"
    call_id: str
    tool_name: str
    arguments: dict[str, JsonValue]


class ToolStatus(_Message):
    """The outcome of registering one tool; `error`, and the `code` of section 11.5, only if it failed."""

    name: str
    status: Literal["registered", "failed"] = "registered"
    error: str | None = None
    code: ErrorCode | None = None


class ToolsRegistered(_Message):
    """Answers `register_tools` (5.5); `count` is the number of tools of this message that were registered."""

    type: Literal["tools_registered"] = "tools_registered"
    count: int
    tools: list[ToolStatus]


class Failure(_Message):
    """A request that was not fulfilled (5.4)."""

    type: Literal["error"] = "error"
    code: ErrorCode
    message: str
    details: str


class PongMessage(_Message):
    """Answers `ping` (5.6)."""

    type: Literal["pong"] = "pong"


Message = Status | LlmResponse | ToolCallDone | ToolCallback | ToolsRegistered | Failure | PongMessage


def write(message: Message, now: datetime) -> str:
    """Return the frame; never raises.

    Args:
        message: The message.
        now: Its time stamp.
    """
    fields = message.model_dump(exclude_none=isinstance(message, ToolsRegistered))
    body = {**fields, "timestamp": stamp(now)}
    try:
        return to_json(body).decode()
    except (PydanticSerializationError, ValueError):
        # A lone surrogate, which UTF-8 cannot encode: `json` writes it as an escape.
        return json.dumps(body, default=str)


def stamp(now: datetime) -> str:
    """Return a time in the document's form: UTC, milliseconds, Z."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
