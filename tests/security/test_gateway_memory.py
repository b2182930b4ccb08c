"""Clients of the gateway that fill its memory with texts and frames, or its event loop with tools."""

import asyncio
import json
from typing import Any

import pytest
from websockets.frames import Opcode

from fleet.ground.loop_budget import FRAME_BYTES, LoopBudget
from tests.support.attacked_gateway import LIMIT, attacked_gateway, frame
from tests.support.gateway_stage import Client, Frame, ScriptedModel, gateway_stage, says

LARGEST = 1024 * 1024
"""Bytes of a message."""
PIECE = 4096
"""Bytes that a connection looks at together."""


async def refused(client: Client, text: str) -> Frame:
    await client.send("text_input", text=text)
    return await client.until("error")


async def test_texts_beyond_the_memory_for_them_get_an_error_and_small_ones_are_taken(redis_url: str) -> None:
    go = asyncio.Event()
    async with (
        gateway_stage(redis_url, ScriptedModel([go, *says("A.")])) as stage,
        stage.client() as one,
        stage.client() as two,
    ):
        budget = stage.gateway._resources.text_budget
        budget.limit = 150_000
        await one.send("text_input", text="x" * 100_000)
        await one.until("status")
        for client in (one, two):
            error = await refused(client, "y" * 100_000)
            assert (error["code"], error["message"]) == ("INTERNAL_ERROR", "Too many requests")
            assert error["details"] == "The texts that wait take too much memory; this one was not taken"
            await client.send("text_input", text="small")
        assert 100_000 < budget.used <= budget.limit
        go.set()
        assert [(await client.answer())["content"] for client in (one, one, two)] == ["A."] * 3
        async with asyncio.timeout(LIMIT):
            while budget.used:
                await asyncio.sleep(0)
        assert (await two.say("y" * 100_000))["content"] == "A."


async def test_texts_of_a_client_that_left_take_no_memory(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel([asyncio.Event()])) as stage:
        budget = stage.gateway._resources.text_budget
        async with stage.client() as client:
            for _ in range(2):
                await client.send("text_input", text="x" * 100_000)
            async with asyncio.timeout(LIMIT):
                while budget.used < 200_000:
                    await asyncio.sleep(0)
        async with asyncio.timeout(LIMIT):
            while budget.used:
                await asyncio.sleep(0)


async def test_of_a_client_that_is_faster_than_it_may_be_one_message_is_kept(redis_url: str) -> None:
    async with attacked_gateway(redis_url, rate_gateway="0.001/1") as site:
        reader, writer = await site.open()
        message = frame(Opcode.TEXT, b'"' + b"x" * (LARGEST - 2) + b'"')
        for _ in range(8):
            writer.write(message)
        most = 0
        async with asyncio.timeout(LIMIT):
            while not site.counts["too many messages"] or most < LARGEST:
                await asyncio.sleep(0)
                most = max([most, *(unread(one.recv_messages.frames.queue) for one in site.clients)])
            for _ in range(1_000):
                await asyncio.sleep(0)
                most = max([most, *(unread(one.recv_messages.frames.queue) for one in site.clients)])
        assert most <= LARGEST + PIECE
        writer.transport.abort()
        await reader.read()


def unread(frames: Any) -> int:
    return sum(len(one.data) for one in frames)


async def test_tools_that_take_long_are_read_in_slices(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, str]] = []
    take = LoopBudget.take

    async def record(budget: LoopBudget, size: int, key: str = "") -> None:
        taken.append((size, key))
        await take(budget, size, key)

    monkeypatch.setattr(LoopBudget, "take", record)
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, stage.client() as client:
        assert (await client.register("a", "b", "c", "d"))["count"] == 4
        assert len([key for _, key in taken if key == "127.0.0.1"]) == 2, "the first frame is looked at twice"
        taken.clear()
        await client.socket.send(json.dumps({"type": "register_tools", "tools": [dear(number) for number in range(8)]}))
        assert (await client.next())["count"] == 8
        assert taken[1:] == [(FRAME_BYTES, "127.0.0.1")] * 7


def dear(number: int) -> dict[str, Any]:
    """Return a tool of 13,000 characters that holds 1,700 schemas."""
    chain: dict[str, Any] = {}
    for _ in range(11):
        chain = {"if": chain}
    properties = {f"{name:x}": chain for name in range(140)}
    return {"name": f"t{number}", "description": "d", "parameters": {"type": "object", "properties": properties}}
