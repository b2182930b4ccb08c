"""Sessions (sections 4.3, 4.4, 6, 9.6, 11.4, 12.2): begun, resumed, ended, expired, and on another process."""

import asyncio

import pytest
import redis

from tests.support.gateway_client import GatewayClient, gateway_client
from tests.support.gateway_process import SESSION_SECONDS, GatewayProcess, gateway_process
from tests.support.redis_server import RedisServer
from tests.support.scripted_llm import ScriptedLlm, roles
from tests.support.until import until

MOST_MESSAGES = 10
SOON = 1000
"""Seconds; a session of `twin` lives for an hour."""


async def remember(url: str, words: str) -> str:
    """Say something with context in a connection of its own; return the session."""
    async with gateway_client(url) as client:
        await client.send("configure", enable_context=True)
        await client.turn(words)
        return client.session


async def resume(client: GatewayClient, session: str) -> None:
    await client.send("start_session", session_id=session)
    message = await client.reply()
    assert (message["type"], message.get("status")) == ("status", "connected"), message
    assert message["data"]["session_id"] == session
    await client.send("configure", enable_context=True)


@pytest.mark.requirement("GW-040")
@pytest.mark.parametrize("members", [{}, {"session_id": None}, {"session_id": ""}])
async def test_a_new_session_is_begun_and_knows_nothing(
    client: GatewayClient, llm: ScriptedLlm, members: dict[str, str | None]
) -> None:
    words = f"新会话{members}"
    await client.send("configure", enable_context=True)
    await client.turn("旧会话里的话")
    await client.send("start_session", **members)
    message = await client.reply()
    assert message["status"] == "connected"
    assert message["data"]["session_id"] not in ("", client.session)
    await client.turn(words)
    assert roles(llm.asked(words)[-1], "user", "assistant") == [words]


@pytest.mark.requirement("GW-041", "GW-009")
async def test_a_session_is_resumed_with_its_history_in_another_connection(
    client: GatewayClient, gateway: GatewayProcess, llm: ScriptedLlm
) -> None:
    session = await remember(gateway.url, "我叫小红，请记住")
    await resume(client, session)
    await client.turn("我刚才叫什么名字？")
    assert roles(llm.asked("我刚才叫什么名字？")[-1], "user")[0] == "我叫小红，请记住"


@pytest.mark.requirement("GW-042")
async def test_a_text_may_name_the_session_that_it_belongs_to(
    client: GatewayClient, gateway: GatewayProcess, llm: ScriptedLlm
) -> None:
    session = await remember(gateway.url, "这句话属于另一个会话")
    await client.send("configure", enable_context=True)
    assert (await client.turn("接着那个会话说", session_id=session)).content
    assert roles(llm.asked("接着那个会话说")[-1], "user") == ["这句话属于另一个会话", "接着那个会话说"]


@pytest.mark.requirement("GW-042")
async def test_a_text_may_name_the_connections_own_session(client: GatewayClient) -> None:
    assert (await client.turn("自己的会话", session_id=client.session)).content


@pytest.mark.requirement("GW-043")
async def test_an_unknown_session_is_an_error_and_the_own_one_goes_on(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", enable_context=True)
    await client.turn("出错之前说的")
    for unknown in ("abc123", "x" * 5000, "../..", "会话"):
        await client.send("start_session", session_id=unknown)
        error = await client.reply()
        assert error.get("code") == "SESSION_ERROR", error
        assert error["details"]
    await client.turn("出错之后说的")
    assert roles(llm.asked("出错之后说的")[-1], "user")[0] == "出错之前说的"


@pytest.mark.requirement("GW-043")
async def test_a_text_for_an_unknown_session_is_an_error(client: GatewayClient, llm: ScriptedLlm) -> None:
    assert (await client.turn("给不存在的会话", session_id="no-such-session")).code == "SESSION_ERROR"
    assert llm.asked("给不存在的会话") == []
    assert await client.settled() == []


@pytest.mark.requirement("GW-044", "GW-052")
async def test_an_expired_session_is_an_error(hasty: GatewayProcess, store: RedisServer) -> None:
    session = await remember(hasty.url, "马上就过期")
    # Asking the gateway whether it still lives would keep it alive.
    with redis.Redis.from_url(store.url) as database:
        for key in database.scan_iter(f"*{session}*"):
            left = database.pttl(key)
            assert left != -1 and left <= SESSION_SECONDS * 1000, f"{key!r} would stay too long"
            database.pexpire(key, 1)
        await asyncio.to_thread(until, lambda: not any(database.scan_iter(f"*{session}*")))
    async with gateway_client(hasty.url) as client:
        await client.send("start_session", session_id=session)
        error = await client.reply()
    assert error.get("code") == "SESSION_ERROR", error


@pytest.mark.requirement("GW-045")
async def test_a_session_that_is_used_does_not_expire(twin: GatewayProcess, store: RedisServer) -> None:
    with redis.Redis.from_url(store.url) as database:
        async with gateway_client(twin.url) as client:
            await client.send("configure", enable_context=True)
            await client.turn("一直在用")
            kept = list(database.scan_iter(f"*{client.session}*"))
            assert len(kept) == 2, "the session and its history"
            for key in kept:
                database.expire(key, SOON)
            await client.turn("最后一句")
            assert all(database.ttl(key) > SOON for key in kept)


@pytest.mark.requirement("GW-046")
async def test_at_most_ten_messages_are_remembered(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", enable_context=True)
    for number in range(8):
        await client.turn(f"历史第{number}句")
    await client.turn("历史的最后")
    told = roles(llm.asked("历史的最后")[-1], "user", "assistant")
    assert told[-1] == "历史的最后"
    assert len(told) - 1 <= MOST_MESSAGES
    assert [text for text in told if text.startswith("历史第")] == [f"历史第{number}句" for number in range(3, 8)]


@pytest.mark.requirement("GW-047")
async def test_a_session_goes_on_in_another_process(
    twin: GatewayProcess, llm: ScriptedLlm, store: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("other")
    with gateway_process(directory, LLM_BASE_URL=llm.url, FLEET_REDIS_URL=store.url) as other:
        session = await remember(other.url, "我住在杭州，进程一")
        other.kill()
    async with gateway_client(twin.url) as client:
        await resume(client, session)
        await client.turn("我住在哪里？进程二")
    told = roles(llm.asked("我住在哪里？进程二")[-1], "user", "assistant")
    assert told[0] == "我住在杭州，进程一"
    assert len(told) == 3


@pytest.mark.requirement("GW-048", "GW-049")
async def test_an_ended_session_is_gone_and_the_connection_works_on(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", enable_context=True)
    await client.turn("结束之前")
    await client.settled()
    await client.send("end_session")
    assert [(message["type"], message["status"]) for message in await client.settled()] == [("status", "idle")]
    await client.turn("结束之后")
    assert roles(llm.asked("结束之后")[-1], "user", "assistant") == ["结束之后"]
    await client.send("start_session", session_id=client.session)
    message = await client.reply()
    assert message.get("code") == "SESSION_ERROR", message


@pytest.mark.requirement("GW-048")
async def test_a_client_that_names_a_session_that_it_ended_gets_one_answer(client: GatewayClient) -> None:
    await client.turn("第一句", session_id=client.session)
    await client.send("end_session")
    turn = await client.turn("第二句", session_id=client.session)
    assert turn.last["type"] in ("llm_response", "error")
    await client.send("end_session")
    await client.send("end_session")
    assert all(message["type"] == "status" for message in await client.settled())
