import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given

from fleet.wire.gateway_messages import (
    Failure,
    LlmResponse,
    Message,
    PongMessage,
    Status,
    ToolCallback,
    ToolCallDone,
    ToolsRegistered,
    ToolStatus,
    write,
)
from tests.support.json_values import JSON

NOW = datetime(2025, 2, 21, 10, 30, 1, 500_400, UTC)
STAMP = "2025-02-21T10:30:01.500Z"


def frame(message: Message, now: datetime = NOW) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(write(message, now))
    return written


def test_messages_are_written_as_the_document_prints_them() -> None:
    assert frame(Status(status="connected", data={"session_id": "abc"})) == {
        "type": "status",
        "status": "connected",
        "data": {"session_id": "abc"},
        "timestamp": STAMP,
    }
    assert frame(LlmResponse(content="今天天气晴朗。")) == {
        "type": "llm_response",
        "content": "今天天气晴朗。",
        "tool_calls": [],
        "is_final": True,
        "timestamp": STAMP,
    }
    assert frame(ToolCallback(call_id="id", tool_name="a.b", arguments={"x": None})) == {
        "type": "tool_callback",
        "call_id": "id",
        "tool_name": "a.b",
        "arguments": {"x": None},
        "timestamp": STAMP,
    }
    done = ToolCallDone(tool_name="t", arguments={}, result={"a": None}, success=True, duration_ms=125.5)
    assert frame(done) == {
        "type": "tool_call",
        "tool_name": "t",
        "arguments": {},
        "result": {"a": None},
        "success": True,
        "duration_ms": 125.5,
        "timestamp": STAMP,
    }
    assert frame(Failure(code="LLM_ERROR", message="m", details="d")) == {
        "type": "error",
        "code": "LLM_ERROR",
        "message": "m",
        "details": "d",
        "timestamp": STAMP,
    }
    assert frame(PongMessage()) == {"type": "pong", "timestamp": STAMP}


def test_only_a_failed_tool_carries_its_error() -> None:
    bad = ToolStatus(name="b", status="failed", error="no", code="TOOL_REGISTRATION_FAILED")
    assert frame(ToolsRegistered(count=1, tools=[ToolStatus(name="a"), bad]))["tools"] == [
        {"name": "a", "status": "registered"},
        {"name": "b", "status": "failed", "error": "no", "code": "TOOL_REGISTRATION_FAILED"},
    ]


def test_times_are_written_in_utc() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=8)))
    assert frame(PongMessage(), there)["timestamp"] == STAMP


def test_half_a_surrogate_pair_is_written_too() -> None:
    assert frame(LlmResponse(content="\ud83d!"))["content"] == "\ud83d!"


@given(JSON)
def test_no_result_raises(value: Any) -> None:
    done = ToolCallDone.model_construct(
        type="tool_call", tool_name="t", arguments={}, result={"a": value}, success=True, duration_ms=1.0
    )
    assert frame(done)["tool_name"] == "t"
