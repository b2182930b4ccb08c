"""The frames that the documents of xiaozhi MCP and py-xiaozhi print, read and written as they stand there."""

import json
from typing import Any

import pytest

from fleet.core.ports import ToolCall
from fleet.core.toolbox import Prepared, Toolbox
from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.mcp import ToolSpec, parse_page, parse_result, parse_server
from fleet.wire.messages import (
    AudioFormat,
    CallToolCommand,
    DeviceCommand,
    DeviceEvent,
    HelloEvent,
    IgnoredEvent,
    InitializeCommand,
    ListToolsCommand,
    NotificationEvent,
    ResponseEvent,
)

VOLUME: dict[str, Any] = {
    "name": "self.audio_speaker.set_volume",
    "description": "Set the volume",
    "inputSchema": {
        "type": "object",
        "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    },
}
INFRARED: dict[str, Any] = {
    "name": "self.ir.send_named",
    "description": "发送已保存的红外编码",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def from_device(payload: dict[str, Any], **around: Any) -> DeviceEvent:
    """Return what the server reads out of a device's MCP message."""
    frame = {"session_id": "s", "type": "mcp", "payload": payload, **around}
    return DIALECT.receive(json.dumps(frame, ensure_ascii=False).encode())


def to_device(order: DeviceCommand) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(DIALECT.send(order))
    return written


@pytest.mark.requirement("XZ-001", "XZ-002")
@pytest.mark.parametrize(
    "order", [InitializeCommand(1, "s"), ListToolsCommand(2, "", "s"), CallToolCommand(3, "self.x", {}, "s")]
)
def test_requests_are_json_rpc_inside_a_message_of_type_mcp(order: DeviceCommand) -> None:
    frame = to_device(order)
    assert set(frame) == {"session_id", "type", "payload"}
    assert (frame["session_id"], frame["type"], frame["payload"]["jsonrpc"]) == ("s", "mcp", "2.0")
    assert isinstance(frame["payload"]["id"], int)
    assert isinstance(frame["payload"]["params"], dict)


@pytest.mark.requirement("XZ-003", "XZ-028")
@pytest.mark.parametrize("id_", [3, "3", 3.0])
def test_an_answer_belongs_to_the_request_of_its_id(id_: object) -> None:
    assert from_device({"jsonrpc": "2.0", "id": id_, "result": {}}) == ResponseEvent("3", {})


@pytest.mark.requirement("XZ-004", "XZ-005")
@pytest.mark.parametrize("transport", ["websocket", "mqtt", "udp"])
@pytest.mark.parametrize("mcp", [True, False])
def test_a_hello_says_whether_a_device_has_tools(transport: str, mcp: bool) -> None:
    audio = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60}
    hello = {
        "type": "hello",
        "version": 3,
        "features": {"mcp": mcp, "other": 1},
        "transport": transport,
        "audio_params": audio,
        "session_id": "of the last hello",
    }
    assert DIALECT.receive(json.dumps(hello).encode()) == HelloEvent(AudioFormat(16000, 60), mcp=mcp)


@pytest.mark.requirement("XZ-007", "XZ-021")
def test_initialize_tells_a_camera_where_to_upload() -> None:
    told = to_device(InitializeCommand(1, "s", "http://host/vision", "secret"))["payload"]
    assert (told["method"], told["id"], told["params"]["protocolVersion"]) == ("initialize", 1, "2024-11-05")
    assert told["params"]["capabilities"]["vision"] == {"url": "http://host/vision", "token": "secret"}
    assert to_device(InitializeCommand(1, "s"))["payload"]["params"]["capabilities"] == {}


@pytest.mark.requirement("XZ-008")
def test_the_answer_to_initialize_names_board_and_firmware() -> None:
    result = {
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bread-compact-wifi", "version": "2.0.1"},
    }
    event = from_device({"jsonrpc": "2.0", "id": 1, "result": result})
    assert isinstance(event, ResponseEvent)
    assert parse_server(event.result) == ("bread-compact-wifi", "2.0.1")


@pytest.mark.requirement("XZ-009", "XZ-011")
@pytest.mark.parametrize("cursor", ["", "self.screen.set_theme"])
def test_a_list_is_asked_for_with_a_cursor(cursor: str) -> None:
    told = to_device(ListToolsCommand(2, cursor, "s"))["payload"]
    assert told == {"jsonrpc": "2.0", "method": "tools/list", "params": {"cursor": cursor}, "id": 2}


@pytest.mark.requirement("XZ-010", "XZ-022")
@pytest.mark.parametrize(("more", "cursor"), [({}, ""), ({"nextCursor": ""}, ""), ({"nextCursor": "next"}, "next")])
def test_a_page_has_tools_and_perhaps_a_cursor(more: dict[str, Any], cursor: str) -> None:
    event = from_device({"jsonrpc": "2.0", "id": 2, "result": {"tools": [VOLUME, INFRARED], **more}})
    assert isinstance(event, ResponseEvent)
    page = parse_page(event.result)
    assert page
    assert page.cursor == cursor
    assert [tool.name for tool in page.tools] == [VOLUME["name"], INFRARED["name"]]
    assert page.tools[1].description == INFRARED["description"]
    assert page.tools[1].input_schema == INFRARED["inputSchema"]


@pytest.mark.requirement("XZ-012", "XZ-023")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("self.audio_speaker.set_volume", {"volume": 50}), ("self.ir.send_named", {"name": "tv_power"})],
)
def test_a_call_has_the_devices_own_name_and_arguments(name: str, arguments: dict[str, Any]) -> None:
    toolbox = Toolbox([ToolSpec.model_validate(tool) for tool in (VOLUME, INFRARED)])
    offer = next(offer for offer in toolbox.offers if name.removeprefix("self.").replace(".", "_") == offer.name)
    prepared = toolbox.prepare(ToolCall("call", offer.name, json.dumps(arguments)))
    assert isinstance(prepared, Prepared)
    told = to_device(CallToolCommand(3, prepared.tool.name, prepared.arguments, "s"))["payload"]
    params = {"name": name, "arguments": arguments}
    assert told == {"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 3}


@pytest.mark.requirement("XZ-013", "XZ-024", "XZ-025")
@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("true", False),
        ("50", False),
        ("发送成功（无回复）", False),
        ("无法打开串口 /dev/ttyS1: Permission denied", True),
    ],
)
def test_the_text_of_a_result_is_kept_whether_it_failed_or_not(text: str, failed: bool) -> None:
    result = {"content": [{"type": "text", "text": text}], "isError": failed}
    event = from_device({"jsonrpc": "2.0", "id": 3, "result": result})
    assert isinstance(event, ResponseEvent)
    assert event.error is None
    found = parse_result(event.result)
    assert (found.text, found.failed) == (text, failed)


@pytest.mark.requirement("XZ-014", "XZ-026")
def test_an_error_of_json_rpc_keeps_its_text() -> None:
    error = {"code": -32601, "message": "Unknown tool: self.non_existent_tool"}
    assert from_device({"jsonrpc": "2.0", "id": 3, "error": error}) == ResponseEvent("3", error=error["message"])


@pytest.mark.requirement("XZ-015")
def test_a_notification_is_a_report_and_no_answer() -> None:
    params = {"newState": "idle", "oldState": "connecting"}
    told = from_device({"jsonrpc": "2.0", "method": "notifications/state_changed", "params": params})
    assert told == NotificationEvent("notifications/state_changed", params)
    assert from_device({"jsonrpc": "2.0", "method": "state_changed", "params": params}) == NotificationEvent(
        "state_changed", params
    )
    assert isinstance(from_device({"jsonrpc": "2.0", "method": "tools/list", "id": 1}), IgnoredEvent)


@pytest.mark.requirement("XZ-046")
def test_an_optional_argument_that_is_null_is_not_sent() -> None:
    schema = {"type": "object", "properties": {"quality": {"type": "integer", "default": 80, "minimum": 1}}}
    prepared = Toolbox([ToolSpec(name="self.screen.draw", input_schema=schema)]).prepare(
        ToolCall("1", "screen_draw", '{"quality": null}')
    )
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {}
