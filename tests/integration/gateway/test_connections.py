import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from fleet.adapters.redis.client import retries
from fleet.core.shared_budget import BudgetShare, SharedBudget
from fleet.ground.errors import ConfigError
from fleet.ground.tasks import running
from fleet.roles.gateway import client as peers
from fleet.roles.gateway.app import Dialogue
from fleet.roles.gateway.client import Client
from fleet.roles.gateway.turns.text_budget import TextBudget
from fleet.roles.gateway.turns.turn import Choices, Question
from fleet.roles.gateway.turns.turns import GatewayTurns
from tests.support.gateway_stage import PATIENCE, UNHURRIED, ScriptedModel, asks, gateway_stage, says
from tests.support.redis_server import RedisServer


async def test_connection_beyond_the_limit_is_closed_with_1013(redis_url: str) -> None:
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(stage.client()) for _ in range(100)]
        async with connect(stage.url, **UNHURRIED) as late:
            with pytest.raises(ConnectionClosed) as closed:
                async with asyncio.timeout(PATIENCE):
                    await late.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(client.say("hi")) for client in clients]
        assert [answer.result()["content"] for answer in answers] == ["A."] * 100
        await clients[0].socket.close()
        async with stage.client() as client:  # at once: who has said goodbye takes no place
            assert client.session


async def test_message_of_a_megabyte_is_taken_and_a_larger_one_closes(redis_url: str) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        empty = len(json.dumps({"type": "text_input", "text": ""}))
        assert (await client.say("x" * (1024 * 1024 - empty)))["content"] == "A."
        await client.socket.send("x" * (1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await client.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def test_client_that_does_not_read_is_cut_off(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.Client.__init__, "__defaults__", (0.3,))
    async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage:
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.connect(("127.0.0.1", stage.gateway.port))
        async with connect(stage.url, sock=narrow, max_queue=1, close_timeout=0.1, **UNHURRIED) as deaf:
            frame = json.dumps({"type": "register_tools", "tools": [{"name": "x" * 64}] * 256})
            with pytest.raises(ConnectionClosed):
                async with asyncio.timeout(PATIENCE):
                    while True:
                        await deaf.send(frame)
        async with asyncio.timeout(PATIENCE):
            while stage.gateway._connections:
                await asyncio.sleep(0.02)


async def test_silent_peer_is_pinged_and_closed(redis_url: str) -> None:
    limits = {"cloud_ping_interval": 0.1, "cloud_ping_timeout": 0.3}
    async with gateway_stage(redis_url, ScriptedModel(says("A.")), **limits) as stage:
        reader, writer = await asyncio.open_connection("127.0.0.1", stage.gateway.port)
        writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        async with asyncio.timeout(PATIENCE):
            received = await reader.read()
        assert b"connected" in received
        assert b"\x89" in received, "a ping frame"
        writer.close()


async def test_plain_http_gets_health_page_or_a_hint(redis_url: str) -> None:
    async with (
        gateway_stage(redis_url, ScriptedModel(says("A."))) as stage,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        base = stage.url.replace("ws://", "http://")
        assert (await http.get(f"{base}/healthz")).json() == {"status": "alive"}
        assert (await http.get(f"{base}/readyz")).json() == {"status": "ready"}
        page = await http.get(f"{base}/test")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert len(page.content) == int(page.headers["content-length"])
        assert (await http.get(f"{base}/nothing")).status_code == 426
        stage.gateway.draining = True
        assert (await http.get(f"{base}/readyz")).status_code == 503


class _Echo:
    def __init__(self, peer: Client) -> None:
        self._peer = peer
        self.turns = GatewayTurns(self._answer, TextBudget(BudgetShare(SharedBudget(1_000_000))))

    async def _answer(self, question: Question) -> None:
        raise AssertionError(question)

    async def receive(self, frame: bytes) -> None:
        await self._peer.send_frame(f"registrar: {frame.decode()}")

    async def refuse(self, frame: bytes) -> None:
        raise AssertionError(frame)


async def test_first_frame_decides_the_dialect(redis_url: str) -> None:
    @asynccontextmanager
    async def registrar(peer: Client) -> AsyncIterator[Dialogue]:
        yield _Echo(peer)

    async with gateway_stage(redis_url, ScriptedModel(says("A.")), registrar=registrar) as stage:
        async with stage.client() as client:
            await client.socket.send('{"jsonrpc": "2.0", "method": "mcp/registerTools"}')
            assert str(await client.socket.recv()).startswith("registrar: ")
            await client.socket.send('{"type": "ping"}')
            assert str(await client.socket.recv()).startswith("registrar: ")
        async with stage.client() as client:
            await client.silence()
            await client.socket.send('{"jsonrpc": "2.0", "method": "mcp/registerTools"}')
            assert (await client.next())["code"] == "INVALID_MESSAGE"


async def test_end_waits_for_the_answers_and_takes_nobody_new(redis_url: str) -> None:
    go = asyncio.Event()
    model = ScriptedModel([go, *says("A.")])
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        await client.send("text_input", text="hi")
        await client.until("status")
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(stage.gateway.drain(PATIENCE))
            while not stage.gateway.draining:
                await asyncio.sleep(0)
            async with connect(stage.url, **UNHURRIED) as late:
                with pytest.raises(ConnectionClosed) as closed:
                    await late.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
            assert not leaving.done()
            go.set()
            assert (await client.answer())["content"] == "A."


async def test_at_the_end_each_client_is_sent_away_once_its_own_question_is_answered(redis_url: str) -> None:
    go = asyncio.Event()
    model = ScriptedModel([go, *says("A.")])
    async with gateway_stage(redis_url, model) as stage, stage.client() as asking, stage.client() as idle:
        await idle.silence()
        await asking.send("text_input", text="hi")
        await asking.until("status")
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(stage.gateway.drain(PATIENCE))
            # Who asks all the time must not keep the gateway from ever being free.
            await sent_away(idle.socket)
            assert not leaving.done()
            go.set()
            assert (await asking.answer())["content"] == "A."
            await sent_away(asking.socket)


async def sent_away(socket: ClientConnection) -> None:
    """Wait until the server goes away (1001)."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


class _Slow(_Echo):
    """A dialect whose answers wait for `go`."""

    def __init__(self, peer: Client, go: asyncio.Event) -> None:
        super().__init__(peer)
        self._go = go

    async def _answer(self, question: Question) -> None:
        await self._go.wait()
        await self._peer.send_frame(f"answer to {question.text}")

    async def receive(self, frame: bytes) -> None:
        assert not self.turns.add(Question(frame.decode(), "s", Choices(0.5, 10, context=False)))


async def test_end_waits_for_the_answers_of_the_other_dialect_too(redis_url: str) -> None:
    go = asyncio.Event()

    @asynccontextmanager
    async def registrar(peer: Client) -> AsyncIterator[Dialogue]:
        slow = _Slow(peer, go)
        async with running("turns", slow.turns.run):
            yield slow

    async with gateway_stage(redis_url, ScriptedModel([]), registrar=registrar) as stage, stage.client() as client:
        await client.socket.send('{"jsonrpc": "2.0"}')
        async with asyncio.timeout(PATIENCE):
            while not any(one.turns.busy for one in stage.gateway._dialogues):
                await asyncio.sleep(0.01)
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(stage.gateway.drain(PATIENCE))
            while not stage.gateway.draining:
                await asyncio.sleep(0)
            assert not leaving.done()
            go.set()
            assert await client.socket.recv() == 'answer to {"jsonrpc": "2.0"}'


async def test_clients_are_told_when_the_server_goes_away(redis_url: str) -> None:
    async with AsyncExitStack() as stack:
        async with gateway_stage(redis_url, ScriptedModel(says("A."))) as stage:
            client = await stack.enter_async_context(stage.client())
        with pytest.raises(ConnectionClosed) as closed:
            await client.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001


async def test_taken_port_is_a_clear_error(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} is taken.*CLOUD_PORT"):
            async with gateway_stage(redis_url, ScriptedModel(says("A.")), cloud_port=port):
                pass


async def test_service_goes_on_without_redis(own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(own_redis.url, model) as stage, stage.client() as client:
        await client.say("one")
        own_redis.stop()
        # It does not come back, so who asks it again need not do so for long.
        monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.5)
        async with asyncio.timeout(240):
            await client.send("start_session", session_id="f" * 32)
            assert json.loads(await client.socket.recv())["code"] == "SESSION_ERROR"
            await client.socket.send('{"type": "text_input", "text": "two"}')
            while json.loads(await client.socket.recv())["type"] != "llm_response":
                pass
        async with httpx2.AsyncClient(timeout=PATIENCE) as http:
            assert (await http.get(f"{stage.url.replace('ws', 'http')}/readyz")).status_code == 503


async def test_turns_of_many_tools_and_clients_do_not_mix(redis_url: str) -> None:
    model = ScriptedModel(asks(("mine", {})), says("Done."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as one, stage.client() as two:
        await one.register("mine")
        await two.register("mine")
        await one.send("text_input", text="go")
        callback = await one.until("tool_callback")
        await two.silence()
        await one.send("tool_result", call_id=callback["call_id"], result=1, success=True)
        await one.answer()
        await two.silence()
