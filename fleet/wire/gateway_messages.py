"""The LLM Gateway WebSocket API, what the server says: typed messages, written as the document prints them."""

import json
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic_core import PydanticSerializationError, to_json

from fleet.wire.gateway import ErrorCode

StatusName = Literal["connected", "processing", "waiting_for_tools", "idle"]
PROCESSING = "正在处理您的请求..."
"""The text of section 5.1."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Status(_Message):
    """Section 5.1."""

    type: Literal["status"] = "status"
    status: StatusName
    data: dict[str, JsonValue]


class LlmResponse(_Message):
    """The answer, cleaned for speech (5.2); pieces that are not final come only where a client asked for them."""

    type: Literal["llm_response"] = "llm_response"
    content: str
    tool_calls: list[dict[str, JsonValue]] = []
    is_final: bool = True


class ToolCallDone(_Message):
    """A server's tool has run (5.3)."""

    type: Literal["tool_call"] = "tool_call"
    tool_name: str
    arguments: dict[str, JsonValue]
    result: dict[str, JsonValue]
    success: bool
    duration_ms: float


class ToolCallback(_Message):
    """A client's tool shall run (5.4); `tool_name` as the client registered it."""

    type: Literal["tool_callback"] = "tool_callback"
    call_id: str
    tool_name: str
    arguments: dict[str, JsonValue]


class ToolStatus(_Message):
    """What became of one tool; `error`, and beside it the `code` of section 11.5, only where it failed."""

    name: str
    status: Literal["registered", "failed"] = "registered"
    error: str | None = None
    code: ErrorCode | None = None


class ToolsRegistered(_Message):
    """Answers `register_tools` (5.5); `count` are those of this message that were registered."""

    type: Literal["tools_registered"] = "tools_registered"
    count: int
    tools: list[ToolStatus]


class Failure(_Message):
    """Something was not done (5.4)."""

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
        message: What is said.
        now: The time that it carries.
    """
    fields = message.model_dump(exclude_none=isinstance(message, ToolsRegistered))
    body = {**fields, "timestamp": stamp(now)}
    try:
        return to_json(body).decode()
    except (PydanticSerializationError, ValueError):
        # Half of a surrogate pair, which only an escape can carry.
        return json.dumps(body, default=str)


def stamp(now: datetime) -> str:
    """Return a time as the document writes it: UTC, milliseconds, Z."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
