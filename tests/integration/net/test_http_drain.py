"""The HTTP server's end: what was begun is answered, what comes after it is not taken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest
from fastapi import FastAPI, Request

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.http.serving import serve
from fleet.ground.settings import load
from fleet.ground.tasks import running

LIMIT = 240


class Slow:
    """An app whose answer is held back until it is let go."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        self.answered = False
        self.app.add_api_route("/", self._answer)

    async def _answer(self) -> str:
        self.asked.set()
        await self.go.wait()
        self.answered = True
        return "done"


@asynccontextmanager
async def client(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT, trust_env=False) as one:
        yield one


async def test_a_request_that_was_begun_is_answered_before_the_end() -> None:
    slow = Slow()
    server = HttpServer(slow.app, "127.0.0.1", 0)
    async with asyncio.timeout(LIMIT), running("http", server.run):
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask(server.port))
            await slow.asked.wait()
            draining = group.create_task(server.drain(LIMIT))
            while await accepts(server.port):
                await asyncio.sleep(0.01)
            assert not draining.done()
            slow.go.set()
        assert asking.result().json() == "done"


async def test_a_visitor_that_asks_nothing_does_not_hold_the_end_up() -> None:
    slow = Slow()
    slow.go.set()
    server = HttpServer(slow.app, "127.0.0.1", 0)
    async with asyncio.timeout(LIMIT), running("http", server.run), client(server.port) as visitor:
        # Its connection is kept for the next request.
        assert (await visitor.get("/")).json() == "done"
        _, mute = await asyncio.open_connection("127.0.0.1", server.port)
        await server.drain(LIMIT * 10)
        mute.close()


async def test_a_request_that_takes_too_long_is_left(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    server = HttpServer(slow.app, "127.0.0.1", 0)
    async with asyncio.timeout(LIMIT), running("http", server.run), asyncio.TaskGroup() as group:
        asking = group.create_task(ask(server.port))
        await slow.asked.wait()
        await server.drain(0.1)
        assert "drain limit exceeded, some requests were not answered" in caplog.text
        assert not asking.done()
        slow.go.set()


async def test_a_role_that_serves_http_answers_first_when_it_ends() -> None:
    slow = Slow()
    settings = load(http_host="127.0.0.1", http_port=0, drain_seconds=LIMIT)
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        async with serve(slow.app, settings) as server:
            asking = group.create_task(ask(server.port))
            await slow.asked.wait()
            group.create_task(let_go(slow, server.port))
        # A process ends here, and with it all that it has not done.
        assert slow.answered
        assert (await asking).json() == "done"


@pytest.mark.parametrize("ends", ["at the disconnect", "when cancelled"])
async def test_no_request_goes_on_after_the_end(ends: str) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()
    app = FastAPI()

    @app.get("/")
    async def answer(request: Request) -> str:
        asked.set()
        try:
            if ends == "when cancelled":
                await asyncio.get_running_loop().create_future()
            await request.receive()  # the request's end
            await request.receive()
            # As a file that is closed in a thread: longer than one step of the loop.
            await asyncio.to_thread(int)
        finally:
            ended.set()
        return "gone"

    server = HttpServer(app, "127.0.0.1", 0)
    async with asyncio.timeout(LIMIT):
        async with running("http", server.run):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await asked.wait()
        assert ended.is_set()
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def ask(port: int) -> httpx2.Response:
    async with client(port) as visitor:
        return await visitor.get("/")


async def let_go(slow: Slow, port: int) -> None:
    """Answer once the server takes nobody any more."""
    while await accepts(port):
        await asyncio.sleep(0.01)
    slow.go.set()


async def accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
