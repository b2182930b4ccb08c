"""Connecting, the heartbeat, and messages that are none (sections 2, 3, 5.1, 5.4, 5.6, 9.7, 11.1, 11.2)."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.gateway_client import LIMIT, GatewayClient, gateway_client
from tests.support.gateway_process import GatewayProcess
from tests.support.gateway_stage import UNHURRIED
from tests.support.openai_server import Answer
from tests.support.scripted_llm import ScriptedLlm

MEGABYTE = 1024 * 1024


@pytest.mark.requirement("GW-001", "GW-002")
async def test_the_first_message_says_connected_and_names_the_session(gateway: GatewayProcess) -> None:
    async with connect(gateway.url, proxy=None, **UNHURRIED) as socket, asyncio.timeout(LIMIT):
        first = json.loads(await socket.recv())
    assert (first["type"], first["status"]) == ("status", "connected")
    assert set(first) == {"type", "status", "data", "timestamp"}
    assert first["data"]["session_id"]


@pytest.mark.requirement("GW-003", "GW-004")
async def test_each_connection_gets_a_short_session_id_of_its_own(gateway: GatewayProcess) -> None:
    ids = set()
    for _ in range(5):
        async with gateway_client(gateway.url) as client:
            ids.add(client.session)
    assert len(ids) == 5
    assert all(0 < len(name.encode()) < 64 and name.isascii() and name.isprintable() for name in ids)


@pytest.mark.requirement("GW-005")
@pytest.mark.parametrize("path", ["", "/", "/ws", "/?token=x"])
async def test_any_path_is_the_api(gateway: GatewayProcess, path: str) -> None:
    async with gateway_client(gateway.url + path) as client:
        assert client.session


@pytest.mark.requirement("GW-006")
async def test_nothing_is_sent_that_was_not_asked_for(client: GatewayClient) -> None:
    assert await client.settled() == []


@pytest.mark.requirement("GW-010", "GW-011")
async def test_a_ping_is_answered_with_a_pong(client: GatewayClient) -> None:
    await client.send("ping")
    assert set(await client.next()) == {"type", "timestamp"}


@pytest.mark.requirement("GW-010")
async def test_a_ping_is_answered_while_the_model_thinks(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("想很久", Answer(then="silent", header=False))
    await client.send("text_input", text="想很久")
    assert (await client.next())["status"] == "processing"
    assert await client.settled() == []


@pytest.mark.requirement("GW-012")
@pytest.mark.parametrize("frame", ["{", "", "hello", '{"type": "ping"', "[" * 100_000, '{"type": "ping"}}', "\ud83d"])
async def test_what_is_no_json_is_an_invalid_message(client: GatewayClient, frame: str) -> None:
    await client.send_raw(frame.encode("utf-8", "replace").decode())
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
    assert await client.settled() == []


@pytest.mark.requirement("GW-012", "GW-013")
@pytest.mark.parametrize("frame", ["[]", "null", "17", '"ping"', "{}", '{"type": null}', '{"type": 7}', '{"type": []}'])
async def test_what_is_no_object_with_a_type_is_an_invalid_message(client: GatewayClient, frame: str) -> None:
    await client.send_raw(frame)
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
    assert await client.settled() == []


@pytest.mark.requirement("GW-014")
@pytest.mark.parametrize("kind", ["unknown", "", "PING", "llm_response", "status", "a" * 10_000])
async def test_an_unknown_type_is_told(client: GatewayClient, kind: str) -> None:
    await client.send(kind, text="x")
    assert (await client.expect("error"))["code"] == "UNKNOWN_MESSAGE_TYPE"
    assert await client.settled() == []


@pytest.mark.requirement("GW-013", "GW-015", "GW-016")
@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("text_input", {}),
        ("text_input", {"text": None}),
        ("text_input", {"text": 7}),
        ("text_input", {"text": ["a"]}),
        ("register_tools", {}),
        ("register_tools", {"tools": None}),
        ("register_tools", {"tools": {"name": "a"}}),
        ("tool_result", {}),
        ("tool_result", {"success": True, "result": 1}),
        ("tool_result", {"call_id": None, "success": True}),
        ("tool_result", {"call_id": 7, "success": True}),
        ("start_session", {"session_id": 7}),
        ("start_session", {"session_id": {}}),
    ],
)
async def test_a_missing_or_wrong_field_is_an_invalid_message(
    client: GatewayClient, kind: str, members: dict[str, Any]
) -> None:
    await client.send(kind, **members)
    error = await client.expect("error")
    assert error["code"] == "INVALID_MESSAGE"
    assert set(error) == {"type", "code", "message", "details", "timestamp"}
    assert error["message"]
    assert await client.settled() == []


@pytest.mark.requirement("GW-017")
@pytest.mark.parametrize("text", ["", "  ", "\n\t", "\u3000"])
async def test_an_empty_text_is_an_invalid_message(client: GatewayClient, text: str) -> None:
    turn = await client.turn(text)
    assert turn.code == "INVALID_MESSAGE"
    assert turn.last["message"] == "Text cannot be empty"
    assert await client.settled() == []


@pytest.mark.requirement("GW-018")
async def test_timestamps_and_unknown_members_do_no_harm(client: GatewayClient) -> None:
    turn = await client.turn("你好", timestamp="2025-02-21T10:30:00.000Z", language="zh", extra={"a": [1]})
    assert "你好" in turn.content
    await client.send("ping", timestamp=17, text=None)
    assert await client.expect("pong")


@pytest.mark.requirement("GW-012")
async def test_after_an_error_the_connection_works_on(client: GatewayClient) -> None:
    for _ in range(20):
        await client.send_raw("{")
        await client.expect("error")
    assert "还在吗" in (await client.turn("还在吗")).content


@pytest.mark.requirement("GW-019")
async def test_a_message_of_a_megabyte_is_taken(client: GatewayClient) -> None:
    frame = json.dumps({"type": "ping", "padding": ""})
    await client.send_raw(frame.replace('""', '"' + "x" * (MEGABYTE - len(frame)) + '"'))
    assert (await client.next())["type"] == "pong"


@pytest.mark.requirement("GW-019")
async def test_a_longer_message_ends_the_connection(gateway: GatewayProcess) -> None:
    async with gateway_client(gateway.url) as client:
        await client.send_raw(json.dumps({"type": "ping", "padding": "x" * MEGABYTE}))
        with pytest.raises(ConnectionClosed) as closed:
            await client.next()
    assert closed.value.rcvd
    assert closed.value.rcvd.code == 1009
