"""As many connections as a gateway takes, and one more (sections 8.1, 11.1, 12.1)."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.gateway_client import BATTERY, LIMIT, GatewayClient, gateway_client
from tests.support.gateway_process import MOST_CONNECTIONS, GatewayProcess
from tests.support.gateway_stage import UNHURRIED
from tests.support.openai_server import spoken
from tests.support.scripted_llm import ScriptedLlm, asks

MOST = 100


async def refusal(url: str) -> int:
    """Return the close code that a connection too many gets."""
    async with asyncio.timeout(LIMIT), connect(url, proxy=None, **UNHURRIED) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd
    return closed.value.rcvd.code


@pytest.mark.requirement("GW-007")
async def test_one_connection_too_many_is_closed_with_1013(unusual: GatewayProcess) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(gateway_client(unusual.url)) for _ in range(MOST_CONNECTIONS)]
        assert await refusal(unusual.url) == 1013
        assert "还在" in (await clients[0].turn("还在")).content


@pytest.mark.requirement("GW-007")
async def test_who_leaves_makes_room(unusual: GatewayProcess) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(gateway_client(unusual.url)) for _ in range(MOST_CONNECTIONS)]
        await clients[0].socket.close()
        async with gateway_client(unusual.url) as newcomer:
            assert await newcomer.settled() == []


@pytest.mark.requirement("GW-007", "GW-008")
async def test_a_hundred_connections_have_a_turn_each_at_once(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    """With a callback in each turn, whose answer must reach the right one."""
    for number in range(MOST):
        llm.when(f"第{number}位用户问电量", asks(("get_battery", {})), spoken(f"第{number}位的电量。"))

    async def turn(client: GatewayClient, number: int) -> str:
        await client.register(BATTERY)
        done = await client.turn(f"第{number}位用户问电量", {"get_battery": lambda _: f"电量属于{number}号"})
        return done.content

    async with AsyncExitStack() as stack, asyncio.timeout(300):
        clients = [await stack.enter_async_context(gateway_client(gateway.url)) for _ in range(MOST)]
        assert await refusal(gateway.url) == 1013
        async with asyncio.TaskGroup() as group:
            turns = [
                group.create_task(turn(client, number), name=f"turn {number}") for number, client in enumerate(clients)
            ]
    assert [task.result() for task in turns] == [f"第{number}位的电量。" for number in range(MOST)]
    results = [llm.asked(f"第{number}位用户问电量")[-1]["messages"][-1]["content"] for number in range(MOST)]
    assert all(f"电量属于{number}号" in text for number, text in enumerate(results))
