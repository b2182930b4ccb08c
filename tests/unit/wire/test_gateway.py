import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.gateway import (
    ERROR_CODES,
    Configure,
    EndSession,
    Ping,
    RegisterTools,
    RequestRefused,
    StartSession,
    TextInput,
    ToolAnswer,
    is_jsonrpc,
    receive,
)
from fleet.wire.gateway_tools import BadTool, unpack_tool
from fleet.wire.mcp import ToolSpec
from tests.support.json_values import JSON

TYPES = ["text_input", "configure", "start_session", "end_session", "register_tools", "tool_result", "ping", "dance"]
FIELDS = ["text", "session_id", "temperature", "max_tokens", "enable_context", "stream", "tools", "call_id", "success"]


def read(**body: Any) -> Any:
    return receive(json.dumps(body))


def refusal(frame: str | bytes) -> RequestRefused:
    refused = receive(frame)
    assert isinstance(refused, RequestRefused), refused
    return refused


def test_requests_of_the_document_are_understood() -> None:
    assert read(type="text_input", text="今天天气怎么样？", session_id="s", timestamp="t") == TextInput(
        "今天天气怎么样？", "s"
    )
    assert read(type="configure", temperature=0.7, max_tokens=2048, enable_context=True) == Configure(0.7, 2048, True)
    assert read(type="start_session", session_id="old") == StartSession("old")
    assert read(type="end_session") == EndSession()
    assert read(type="ping") == Ping()
    assert receive(b'{"type":"ping"}') == Ping()


def test_absent_null_and_empty_fields_are_the_same() -> None:
    assert read(type="text_input", text="hi", session_id=None) == TextInput("hi")
    assert read(type="start_session", session_id="") == StartSession()
    assert read(type="configure", temperature=None) == Configure()
    assert read(type="configure", unknown={"deep": 1}, stream=True) == Configure(stream=True)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "INVALID_MESSAGE"),
        ("no json", "INVALID_MESSAGE"),
        ("[]", "INVALID_MESSAGE"),
        ("null", "INVALID_MESSAGE"),
        ('{"type": 1}', "INVALID_MESSAGE"),
        ("{}", "INVALID_MESSAGE"),
        ('{"type": "dance"}', "UNKNOWN_MESSAGE_TYPE"),
        ('{"type": "text_input"}', "INVALID_MESSAGE"),
        ('{"type": "text_input", "text": 5}', "INVALID_MESSAGE"),
        ('{"type": "text_input", "text": "\\ud800"}', "INVALID_MESSAGE"),
        ('{"type": "text_input", "text": "hi", "session_id": 5}', "INVALID_MESSAGE"),
        ('{"type": "register_tools"}', "INVALID_MESSAGE"),
        ('{"type": "register_tools", "tools": {}}', "INVALID_MESSAGE"),
        ('{"type": "tool_result"}', "INVALID_MESSAGE"),
        ('{"type": "tool_result", "call_id": ""}', "INVALID_MESSAGE"),
        ('{"type": "tool_result", "call_id": "a", "result": NaN}', "INVALID_MESSAGE"),
        ('{"type": "tool_result", "call_id": "a", "result": 1e999}', "INVALID_MESSAGE"),
        ("[" * 5_000, "INVALID_MESSAGE"),
        ('{"type": "ping", "x": ' + "[" * 500 + "]" * 500 + "}", "INVALID_MESSAGE"),
        (b"\xff\xfe", "INVALID_MESSAGE"),
    ],
)
def test_faulty_frame_is_refused_with_its_code(frame: str | bytes, code: str) -> None:
    refused = refusal(frame)
    assert refused.code == code
    assert refused.details


def test_empty_text_is_refused_in_the_documents_words() -> None:
    assert refusal('{"type": "text_input", "text": ""}').message == "Text cannot be empty"
    assert refusal('{"type": "text_input", "text": " \\n"}').message == "Text cannot be empty"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"temperature": value} for value in (1.1, -0.1, True, "hot")),
        *({"max_tokens": value} for value in (0, 1.5, True, "many")),
        *({"enable_context": value} for value in ("perhaps", "true", 1, 0)),
    ],
)
def test_configuration_beyond_its_range_is_refused_as_a_whole(wrong: dict[str, Any]) -> None:
    assert read(type="configure", stream=True, **wrong).code == "INVALID_MESSAGE"


@pytest.mark.parametrize("value", ["true", 1, 0])
def test_a_stream_is_asked_for_with_a_truth_value_only(value: Any) -> None:
    assert read(type="configure", stream=value).code == "INVALID_MESSAGE"


@pytest.mark.parametrize(("written", "meant"), [(1, True), ("true", True), (0, False), ("false", False)])
def test_success_may_be_written_as_a_number_or_a_text(written: Any, meant: bool) -> None:
    assert read(type="tool_result", call_id="a", success=written) == ToolAnswer("a", meant)


def test_edges_of_the_configuration_are_taken() -> None:
    assert read(type="configure", temperature=0, max_tokens=1.0) == Configure(0.0, 1)
    assert read(type="configure", temperature=1) == Configure(1.0)


def test_details_do_not_repeat_what_the_client_wrote() -> None:
    assert "secret" not in refusal('{"type": "text_input", "text": ["secret"]}').details


def test_result_may_lack_success_and_carry_anything() -> None:
    assert read(type="tool_result", call_id="a", result={"x": [1]}) == ToolAnswer("a", True, {"x": [1]})
    assert read(type="tool_result", call_id="a", error="broken") == ToolAnswer("a", False, None, "broken")
    assert read(type="tool_result", call_id="a", success=True, error=None) == ToolAnswer("a", True)
    assert read(type="tool_result", call_id="a", success=False) == ToolAnswer("a", False)
    assert read(type="tool_result", call_id="a", success=False, error={"code": 1}).error == '{"code": 1}'


def test_tools_are_read_one_by_one() -> None:
    good = {"name": "a.b", "description": "d", "parameters": {"type": "object", "properties": {}}}
    request = read(type="register_tools", tools=[good, {"name": "9"}, 5])
    assert isinstance(request, RegisterTools)
    read_tools = [tool if isinstance(tool, BadTool) else unpack_tool(tool) for tool in request.tools]
    assert read_tools[0] == ToolSpec(name="a.b", description="d", input_schema=good["parameters"])
    assert [type(tool) for tool in read_tools[1:]] == [BadTool, BadTool]
    assert read(type="register_tools", tools=[{}] * 257).code == "TOOL_REGISTRATION_FAILED"


def test_jsonrpc_is_recognised_by_its_member() -> None:
    assert is_jsonrpc('{"jsonrpc": "2.0", "id": 1}')
    assert is_jsonrpc(b'[{"jsonrpc": "2.0"}]')
    for frame in ('{"type": "ping"}', "no json", "[]", '"jsonrpc"', "[" * 5_000):
        assert not is_jsonrpc(frame)


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
def test_no_body_raises(kind: str, body: dict[str, Any]) -> None:
    request = receive(json.dumps({**body, "type": kind}))
    if isinstance(request, RequestRefused):
        assert request.code in ERROR_CODES


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_frame_raises(frame: str | bytes) -> None:
    receive(frame)
    is_jsonrpc(frame)


@given(st.integers(0, 400), st.sampled_from(list('{}[]":,x0\\')))
def test_no_damaged_frame_raises(place: int, mark: str) -> None:
    tool = {"name": "a.b", "description": "电量", "parameters": {"type": "object", "properties": {"v": {"minimum": 0}}}}
    frame = json.dumps({"type": "register_tools", "tools": [tool], "timestamp": "x"})
    receive(frame[:place] + mark + frame[place + 1 :])
