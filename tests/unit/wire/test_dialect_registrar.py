import json
from typing import Any

import pytest

from fleet.wire.dialect_registrar import DIALECT, LONGEST_REQUEST_ID, MOST_TOOLS
from fleet.wire.json_text import LARGEST_FRAME
from fleet.wire.mcp import DEEPEST_SCHEMA, LARGEST_SCHEMA, LONGEST_DESCRIPTION, LONGEST_NAME, ToolSpec
from fleet.wire.messages import (
    AiMessageCommand,
    AnswerStopCommand,
    BadRequestEvent,
    CallToolCommand,
    DeviceCommand,
    DeviceEvent,
    ErrorCommand,
    InitializeCommand,
    InitializedCommand,
    ListToolsCommand,
    MalformedEvent,
    NotificationEvent,
    RegisteredCommand,
    RegisterToolsEvent,
    ResponseEvent,
)

VOLUME = {
    "name": "amplify_volume",
    "description": "设置设备音量",
    "main_type": "remote",
    "sub_type": "control",
    "parameters": {"type": "object", "properties": {"level": {"type": "integer"}}, "required": ["level"]},
}


def register(*tools: Any, mac: Any = "AA-BB-CC-DD-EE-FF", **changed: Any) -> DeviceEvent:
    frame = {"jsonrpc": "2.0", "method": "mcp/registerTools", "id": "r1", "params": {"mac_addr": mac, "tools": tools}}
    return say(frame | changed)


def say(frame: Any) -> DeviceEvent:
    return DIALECT.receive(json.dumps(frame).encode())


def tools_of(event: DeviceEvent) -> tuple[ToolSpec, ...]:
    assert isinstance(event, RegisterToolsEvent), event
    return event.tools


def told(order: DeviceCommand) -> Any:
    return json.loads(DIALECT.send(order))


@pytest.mark.requirement("REG-01")
@pytest.mark.requirement("REG-06")
def test_a_registration_says_all_tools_as_they_are() -> None:
    level = VOLUME["parameters"]
    volume = ToolSpec(name="amplify_volume", description="设置设备音量", input_schema=level, control=True)
    asked = register(VOLUME, VOLUME | {"name": "read_level", "sub_type": "query"})
    assert asked == RegisterToolsEvent(
        "r1", "aa:bb:cc:dd:ee:ff", (volume, volume.model_copy(update={"name": "read_level", "control": False}))
    )


@pytest.mark.requirement("REG-02")
@pytest.mark.parametrize(
    "spelling",
    [
        "AA-BB-CC-DD-EE-FF",
        "aa:bb:cc:dd:ee:ff",
        "AABBCCDDEEFF",
        "aabb.ccdd.eeff",
        "aa bb cc dd ee ff",
        " AA_BB_CC_DD_EE_FF ",
    ],
)
def test_a_mac_may_be_spelt_in_any_usual_way(spelling: str) -> None:
    asked = register(VOLUME, mac=spelling)
    assert isinstance(asked, RegisterToolsEvent)
    assert asked.mac == "aa:bb:cc:dd:ee:ff"


@pytest.mark.requirement("REG-02")
def test_a_registration_need_not_name_a_mac_but_must_not_name_what_is_none() -> None:
    asked = say({"jsonrpc": "2.0", "method": "mcp/registerTools", "id": 4, "params": {"tools": []}})
    assert asked == RegisterToolsEvent(4, None, ())
    for mac in ("", "x", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:fg", "a" * 10_000):
        assert register(mac=mac) == BadRequestEvent("r1", -32602, "params.mac_addr is no MAC")


@pytest.mark.requirement("REG-03")
def test_a_tool_says_little_and_is_taken_for_a_query_on_the_device() -> None:
    assert tools_of(register({"name": "x", "more": 1})) == (ToolSpec(name="x"),)
    assert tools_of(register({"name": "x", "description": None, "parameters": None})) == (ToolSpec(name="x"),)


@pytest.mark.requirement("REG-04")
def test_tools_of_the_server_are_none_of_the_devices() -> None:
    assert register(VOLUME | {"main_type": "local"}, {"name": "y"}) == RegisterToolsEvent(
        "r1", "aa:bb:cc:dd:ee:ff", (ToolSpec(name="y"),), ("amplify_volume",)
    )


@pytest.mark.requirement("REG-05")
def test_of_two_tools_of_one_name_the_later_counts() -> None:
    assert tools_of(register({"name": "x", "description": "a"}, {"name": "x", "description": "b"})) == (
        ToolSpec(name="x", description="b"),
    )


@pytest.mark.requirement("REG-07")
@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ({}, "params.tools.0.name"),
        ({"name": ""}, "params.tools.0.name"),
        ({"name": 7}, "params.tools.0.name"),
        ({"name": "x" * (LONGEST_NAME + 1)}, "params.tools.0.name"),
        ({"name": "x", "main_type": "elsewhere"}, "params.tools.0.main_type"),
        ({"name": "x", "sub_type": 1}, "params.tools.0.sub_type"),
        ({"name": "x", "parameters": "none"}, "params.tools.0.parameters"),
        ({"name": "x", "parameters": {"a": "x" * LARGEST_SCHEMA}}, "params.tools.0.parameters"),
        ("x", "params.tools.0"),
    ],
)
def test_a_wrong_tool_is_named_and_nothing_is_registered(tool: Any, place: str) -> None:
    refused = register(tool)
    assert isinstance(refused, BadRequestEvent)
    assert (refused.id, refused.code) == ("r1", -32602)
    assert refused.reason.startswith(f"{place}: ")


@pytest.mark.requirement("REG-07")
@pytest.mark.parametrize("params", [None, [], "x", 7, {}, {"tools": None}, {"tools": {}}, {"mac_addr": 7, "tools": []}])
def test_wrong_params_are_refused(params: Any) -> None:
    refused = register(params=params)
    assert isinstance(refused, BadRequestEvent)
    assert (refused.id, refused.code) == ("r1", -32602)
    assert (refused.reason == "params: must be an object") is not isinstance(params, dict)


@pytest.mark.requirement("REG-07")
def test_there_are_limits() -> None:
    deep: dict[str, Any] = {}
    for _ in range(DEEPEST_SCHEMA):
        deep = {"a": deep}
    assert isinstance(register({"name": "x", "parameters": deep}), BadRequestEvent)
    assert len(tools_of(register(*({"name": f"t{number}"} for number in range(MOST_TOOLS))))) == MOST_TOOLS
    assert isinstance(register(*({"name": f"t{number}"} for number in range(MOST_TOOLS + 1))), BadRequestEvent)
    (tool,) = tools_of(register({"name": "x", "description": "d" * 9999}))
    assert len(tool.description) == LONGEST_DESCRIPTION


def test_all_tools_together_are_bounded() -> None:
    schema = {"properties": {"a": {"description": "x" * 7000}}}
    many = [{"name": f"t{number}", "parameters": schema} for number in range(10)]
    assert len(tools_of(register(*many[:9]))) == 9
    assert isinstance(register(*many), BadRequestEvent)


@pytest.mark.requirement("REG-08")
@pytest.mark.parametrize("number", [None, True, [], {}, "x" * (LONGEST_REQUEST_ID + 1), 10**309, -(10**128)])
def test_a_registration_without_an_id_that_could_confirm_it_is_none(number: Any) -> None:
    refused = register(VOLUME, id=number)
    assert isinstance(refused, BadRequestEvent)
    assert (refused.id, refused.code) == (None, -32600)


@pytest.mark.requirement("REG-09")
@pytest.mark.parametrize("number", ["client-reg-001", 7, 1.5, "", 0, "é", 10**128 - 1])
def test_a_confirmation_and_an_error_have_the_id_as_it_came(number: Any) -> None:
    asked = register(VOLUME, id=number)
    assert isinstance(asked, RegisterToolsEvent)
    confirmed = told(RegisteredCommand(asked.id, asked.provided))
    assert confirmed == {
        "jsonrpc": "2.0",
        "id": number,
        "result": {"status": "registered", "message": "Tools were successfully registered."},
    }
    refused = register("wrong", id=number)
    assert isinstance(refused, BadRequestEvent)
    answer = told(ErrorCommand(refused.id, refused.code, refused.reason))
    assert answer["id"] == number
    assert set(answer) == {"jsonrpc", "id", "error"}


@pytest.mark.requirement("REG-10")
@pytest.mark.parametrize(
    ("frame", "number", "code"),
    [
        (b"{", None, -32700),
        (b'{"jsonrpc":"2.0","method":"mcp/registerTools","par', None, -32700),
        (b"[]", None, -32600),
        (b'[{"jsonrpc":"2.0","method":"x","id":1}]', None, -32600),
        (b"7", None, -32600),
        (b"{}", None, -32600),
        (b'{"jsonrpc":"1.0","method":"mcp/registerTools","id":1}', 1, -32600),
        (b'{"jsonrpc":"2.0","method":7,"id":1}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":"a"}', "a", -32600),
        (b'{"jsonrpc":"2.0","method":"mcp/unknown","id":"a"}', "a", -32601),
        (b'{"jsonrpc":"2.0","method":"mcp/unknown","id":[]}', None, -32600),
        (b" " * (LARGEST_FRAME + 1), None, -32600),
    ],
)
def test_bad_frames_have_the_errors_of_json_rpc(frame: bytes, number: Any, code: int) -> None:
    refused = DIALECT.receive(frame)
    assert isinstance(refused, BadRequestEvent)
    assert (refused.id, refused.code) == (number, code)
    assert refused.reason


@pytest.mark.requirement("REG-11")
def test_a_call_has_a_text_as_id_and_its_answer_is_known_by_it() -> None:
    call = told(CallToolCommand(12345, "amplify_volume", {"level": 80}))
    assert call == {
        "jsonrpc": "2.0",
        "method": "mcp/tool/execute",
        "params": {"tool_name": "amplify_volume", "tool_input": {"level": 80}},
        "id": "call-12345",
    }
    for number in (call["id"], "12345", 12345, 12345.0):
        assert say({"jsonrpc": "2.0", "id": number, "result": True}) == ResponseEvent("12345", True, plain=True)


@pytest.mark.requirement("REG-12")
@pytest.mark.parametrize("result", [None, True, 0, 25.5, "ok", "", [], [1, {"a": None}], {}, {"content": "x"}])
def test_a_result_may_be_any_json(result: Any) -> None:
    assert say({"jsonrpc": "2.0", "id": "call-1", "result": result}) == ResponseEvent("1", result, plain=True)


@pytest.mark.requirement("REG-13")
@pytest.mark.parametrize("code", [-32000, -32050, -32099, -1, 5, None, "x"])
def test_an_error_keeps_its_text_whatever_its_code(code: Any) -> None:
    error = {"code": code, "message": "执行失败"}
    assert say({"jsonrpc": "2.0", "id": "call-1", "error": error}) == ResponseEvent("1", error="执行失败", plain=True)


@pytest.mark.requirement("REG-13")
def test_an_error_without_a_text_is_one_all_the_same() -> None:
    for error in ({}, {"code": -32000}, "", True, {"message": 7}):
        answer = say({"id": "call-1", "error": error})
        assert isinstance(answer, ResponseEvent)
        assert answer.error


@pytest.mark.requirement("REG-10")
@pytest.mark.parametrize("number", [None, True, [], {}, 10**309])
def test_an_answer_to_nothing_is_never_answered(number: Any) -> None:
    assert isinstance(say({"jsonrpc": "2.0", "id": number, "error": {"code": -32700}}), MalformedEvent)


@pytest.mark.requirement("REG-14")
@pytest.mark.parametrize("kind", ["chunk", "final", "thought"])
def test_the_models_words_are_notifications(kind: Any) -> None:
    assert told(AiMessageCommand(kind, "北京今天天气晴朗。")) == {
        "jsonrpc": "2.0",
        "method": "mcp/ai/message",
        "params": {"type": kind, "content": "北京今天天气晴朗。"},
    }


@pytest.mark.requirement("REG-15")
def test_what_a_device_reports_of_its_own_accord_is_a_notice() -> None:
    assert say({"jsonrpc": "2.0", "method": "door", "params": {"open": True}}) == NotificationEvent(
        "door", {"open": True}
    )


@pytest.mark.requirement("REG-16")
def test_a_device_with_a_microphone_is_told_about_its_session_as_a_xiaozhi() -> None:
    assert told(AnswerStopCommand("s")) == {"type": "tts", "session_id": "s", "state": "stop"}


@pytest.mark.requirement("REG-16")
def test_nothing_of_the_other_dialects_discovery_is_said() -> None:
    assert not any(DIALECT.send(order) for order in (InitializeCommand(1), InitializedCommand(), ListToolsCommand(1)))
