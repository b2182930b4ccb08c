"""The manner of py-xiaozhi, with the frames that its documentation prints."""

import json
from typing import Any

import pytest

from fleet.wire.dialect_xiaozhi import DIALECT
from fleet.wire.mcp import parse_page, parse_result
from fleet.wire.messages import AudioFormat, CallToolCommand, HelloEvent, ListToolsCommand, ResponseEvent

DENIED = "无法打开串口 /dev/ttyS1: Permission denied"
IR = {
    "name": "self.ir.send_named",
    "description": "发送已保存的红外编码",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def answered(**payload: Any) -> ResponseEvent:
    frame = {"session_id": "s", "type": "mcp", "payload": {"jsonrpc": "2.0", **payload}}
    event = DIALECT.receive(json.dumps(frame, ensure_ascii=False).encode())
    assert isinstance(event, ResponseEvent), event
    return event


@pytest.mark.parametrize("number", [2, "2", 2.0])
@pytest.mark.parametrize(("failed", "text"), [(False, "发送成功（无回复）"), (True, DENIED)])
def test_an_error_is_a_result_whose_text_is_kept(number: Any, failed: bool, text: str) -> None:
    answer = answered(id=number, result={"content": [{"type": "text", "text": text}], "isError": failed})
    result = parse_result(answer.result)
    assert (answer.id, answer.error, result.failed, result.text) == ("2", None, failed, text)


def test_an_error_without_a_text_is_one_all_the_same() -> None:
    for content in ([], [{"type": "text", "text": ""}], [{"type": "text"}]):
        result = parse_result(answered(id=2, result={"content": content, "isError": True}).result)
        assert result.failed
        assert result.text


def test_an_answer_may_have_both_members_of_which_one_is_null() -> None:
    assert answered(id=1, result={"a": 1}, error=None) == ResponseEvent("1", {"a": 1})
    assert answered(id=1, result=None, error={"code": -32601, "message": "Unknown tool: x"}).error == "Unknown tool: x"


def test_pages_end_where_there_is_no_cursor() -> None:
    for last in ({}, {"nextCursor": ""}, {"nextCursor": None}):
        page = parse_page(answered(id=1, result={"tools": [IR], **last}).result)
        assert page
        assert ([tool.name for tool in page.tools], page.cursor) == (["self.ir.send_named"], "")
    page = parse_page({"tools": [IR], "nextCursor": "self.music.play"})
    assert page
    assert page.cursor == "self.music.play"


def test_requests_are_those_of_the_document() -> None:
    asked = json.loads(DIALECT.send(CallToolCommand(2, "self.ir.send_named", {"name": "tv_power"}, "s")))["payload"]
    assert asked == {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "self.ir.send_named", "arguments": {"name": "tv_power"}},
    }
    assert json.loads(DIALECT.send(ListToolsCommand(1)))["payload"]["params"] == {"cursor": ""}


def test_frames_may_have_20_ms() -> None:
    audio = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 20}
    hello = {"type": "hello", "version": 1, "features": {"mcp": True}, "transport": "udp", "audio_params": audio}
    assert DIALECT.receive(json.dumps(hello).encode()) == HelloEvent(AudioFormat(16000, 20), mcp=True, version=1)
