"""Clients of the gateway who register tools to fill its memory, or to hold up everybody else."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fleet.roles.gateway.registrar.registrar import open_registrar
from tests.support.gateway_stage import Client, Frame, ScriptedModel, Stage, gateway_stage, says

LIMIT = 240
EVIL = [[]] * 320_000


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "parameters": {"type": "object", **parameters}}


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage:
        yield stage


async def register(client: Client, *tools: dict[str, Any]) -> Frame:
    await client.send("register_tools", tools=list(tools))
    async with asyncio.timeout(LIMIT):
        return await client.next()


def refused(reply: Frame) -> list[str]:
    """Return why tools were refused; each with the document's code."""
    failed = [one for one in reply["tools"] if one["status"] == "failed"]
    assert {one["code"] for one in failed} <= {"TOOL_REGISTRATION_FAILED"}
    return [one["error"] for one in failed]


async def test_a_tool_is_bounded_whatever_keyword_hides_it(stage: Stage) -> None:
    async with stage.client() as client:
        reply = await register(client, tool("big", **{"x-own": [""] * 8_000}), tool("good"))
        assert refused(reply) == ["Tool is too large, at most 16000 characters of JSON"]
        assert reply["tools"][0]["name"] == "big"
        assert reply["count"] == 1
        assert refused(await register(client, tool("long", title="x" * 900_000)))


async def test_a_tool_has_so_many_levels_whatever_keyword_hides_them(stage: Stage) -> None:
    async with stage.client() as client:
        reply = await register(client, tool("deep", **{"x-own": nested(150)}), tool("good", **{"x-own": nested(20)}))
        assert refused(reply) == ["Tool is nested too deeply, at most 32 levels of JSON"]
        assert reply["count"] == 1


async def test_the_tools_of_a_connection_are_bounded_together(stage: Stage) -> None:
    async with stage.client() as client:
        large = "x" * 15_000
        reply = await register(client, *(tool(f"t{number}", title=large) for number in range(12)))
        assert reply["count"] == 8
        assert set(refused(reply)) == {"Too much, all tools of a connection may have 131072 characters of JSON"}
        for number in range(4):
            assert refused(await register(client, tool(f"u{number}", title=large)))
        assert (await register(client, tool("small")))["count"] == 1


async def test_the_tools_of_all_connections_are_bounded_together_until_they_leave(stage: Stage) -> None:
    room = stage.gateway._resources.tool_budget
    room.limit = 20_000
    async with stage.client() as one, stage.client() as two:
        assert (await register(one, tool("large", title="x" * 15_000)))["count"] == 1
        [why] = refused(await register(two, tool("large", title="x" * 15_000)))
        assert why == "The tools of all connections together are too many now, come again later"
        assert 15_000 < room.used <= room.limit
        await one.socket.close()
        async with asyncio.timeout(LIMIT):
            while not (await register(two, tool("large", title="x" * 15_000)))["count"]:
                await asyncio.sleep(0.05)
    async with asyncio.timeout(LIMIT):
        while room.used:
            await asyncio.sleep(0.05)


async def test_a_registrars_tools_are_bounded_as_a_devices_are(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage:
        resources = stage.gateway._resources
        stage.gateway._registrar = open_registrar(resources)
        async with stage.client() as client:
            for number, schema, share in (
                (1, {"x-own": EVIL[:4_000]}, None),
                (2, {"x-own": nested(20)}, None),
                (3, {"title": "x" * 7_000}, 5_000),
                (4, {"title": "x" * 4_000}, 5_000),
            ):
                resources.tool_budget.limit = share or 1_000_000
                params = {"tools": [{"name": "t", "description": "d", "parameters": schema}]}
                body = {"jsonrpc": "2.0", "id": number, "method": "mcp/registerTools", "params": params}
                await client.socket.send(json.dumps(body))
                async with asyncio.timeout(LIMIT):
                    reply = await client.next()
                assert ("result" in reply) is (number == 4), reply
                assert reply["id"] == number
        async with asyncio.timeout(LIMIT):
            while resources.tool_budget.used:
                await asyncio.sleep(0.05)


async def test_a_large_message_counts_as_many(redis_url: str) -> None:
    async with (
        gateway_stage(redis_url, ScriptedModel(says("A.")), rate_gateway="0.001/200") as stage,
        stage.client() as client,
    ):
        assert refused(await register(client, tool("large", title="x" * 1_000_000)))
        reply = await register(client, tool("large", title="x" * 1_000_000))
        assert (reply["type"], reply["code"], reply["message"]) == ("error", "INTERNAL_ERROR", "Too many requests")
        assert stage.gateway.connection_limits.counts["too many messages"] == 1


async def test_a_small_allowance_takes_a_large_message_too(redis_url: str) -> None:
    async with (
        gateway_stage(redis_url, ScriptedModel(says("A.")), rate_gateway="0.001/5") as stage,
        stage.client() as client,
    ):
        assert refused(await register(client, tool("large", title="x" * 1_000_000)))


async def test_a_message_of_too_many_values_is_refused_before_it_is_parsed(stage: Stage) -> None:
    async with stage.client() as client:
        await client.send("tool_result", call_id="c", result=EVIL[:200_000])
        reply = await client.next()
        assert (reply["code"], reply["details"]) == ("INVALID_MESSAGE", "A message may hold 20000 values")
        assert (await client.say("a, b [c] {d} " * 20_000))["content"] == "A."


async def test_a_registrars_frame_of_too_many_values_is_refused(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage:
        stage.gateway._registrar = open_registrar(stage.gateway._resources)
        async with stage.client() as client:
            await client.socket.send('{"jsonrpc":"2.0","id":1,"method":"m"}')
            assert (await client.next())["id"] == 1
            await client.socket.send(f'{{"jsonrpc":"2.0","id":1,"result":[{"{}," * 60_000}1]}}')
            assert (await client.next())["error"]["message"] == "a frame may hold 20000 values"
