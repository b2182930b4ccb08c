"""Who has the places of an HTTP server when there are more connections than places."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest
from fastapi import FastAPI

from fleet.adapters.net.http.connection import Bounds
from fleet.adapters.net.http.server import HttpServer
from fleet.ground.tasks import running

SOON = 60.0
PLACES = 8
BODY = b"POST /%b HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"
"""All of a request but 8 bytes."""


class App:
    """Answers when it has the whole body; at /hold it waits until it is let go, at /early it answers at once."""

    def __init__(self) -> None:
        self.go, self.held = asyncio.Event(), 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        early = scope["path"] == "/early"
        while not early and (event := await receive()).get("more_body"):
            pass
        if not early and event["type"] == "http.disconnect":
            return
        if scope["path"] == "/hold":
            self.held += 1
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Visitor:
    """A connection, opened and with these bytes sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def answer(self) -> bytes:
        """Return the status and the body of the next answer; empty if the server has ended the connection."""
        try:
            async with asyncio.timeout(SOON):
                head = await self._reader.readuntil(b"\r\n\r\n")
                return head[9:12] + await self._reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""


class Site:
    """A server with few places."""

    def __init__(self, stack: AsyncExitStack, app: App, server: HttpServer) -> None:
        self._stack, self.app, self.server = stack, app, server

    async def visit(self, sent: bytes = b"") -> Visitor:
        """Connect, send, and wait until the server has read it."""
        async with asyncio.timeout(SOON):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self._stack.callback(writer.close)
        writer.write(sent)
        return Visitor(reader, writer)

    async def hold(self, count: int) -> list[Visitor]:
        """Begin requests that go on."""
        visitors = [await self.visit(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(count)]
        await self.until(lambda: self.app.held >= count)
        return visitors

    async def until(self, reached: Any) -> None:
        async with asyncio.timeout(SOON):
            while not reached():
                await asyncio.sleep(0.01)

    async def serves(self) -> bool:
        return await (await self.visit(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).answer() == b"200ok"


@asynccontextmanager
async def site(proxies: str, **bounds: int) -> AsyncIterator[Site]:
    app = App()
    server = HttpServer(cast("FastAPI", app), "127.0.0.1", 0, bounds=Bounds(head=SOON, **bounds), proxies=proxies)
    async with running("http", server.run), AsyncExitStack() as stack:
        yield Site(stack, app, server)
    assert not server.bounds.here and not server.bounds.waiting


FULL = {"one address": ("", {"each": PLACES}), "a proxy": ("127.0.0.1", {"each": 2, "connections": PLACES})}


@pytest.mark.parametrize(("proxies", "bounds"), FULL.values(), ids=FULL)
@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo", BODY % b"", BODY % b"early"])
async def test_who_owes_a_request_gives_its_place_away(
    proxies: str, bounds: dict[str, int], sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(proxies, **bounds) as one:
        running_ = await one.hold(2)
        slow = [await one.visit(sent) for _ in range(PLACES * 2)]
        assert await one.serves()
        await one.until(lambda: one.server.bounds.counts["too many connections"] == PLACES + 3)
        assert {one.address for one in caplog.records if one.message == "too many connections"} == {"127.0.0.1"}  # type: ignore[attr-defined]
        while await slow[0].answer():
            pass  # what it was sent before its end
        one.app.go.set()
        assert [await visitor.answer() for visitor in running_] == [b"200ok"] * 2


async def test_a_connection_with_whole_requests_keeps_its_place() -> None:
    async with site("", each=PLACES) as one:
        held = await one.hold(PLACES)
        held[0].writer.write(BODY % b"")
        assert not await one.serves()
        one.app.go.set()
        assert [await visitor.answer() for visitor in held] == [b"200ok"] * PLACES
        held[0].writer.write(b"23456789")
        assert await held[0].answer() == b"200ok"
        assert await one.serves()


async def test_who_sends_something_goes_behind_who_is_silent() -> None:
    async with site("", each=PLACES) as one:
        slow = [await one.visit(BODY % b"") for _ in range(PLACES)]
        await one.until(lambda: len(one.server.bounds.waiting) == PLACES)
        oldest = next(iter(one.server.bounds.waiting))
        slow[0].writer.write(b"2")
        await one.until(lambda: next(iter(one.server.bounds.waiting)) is not oldest)
        assert await one.serves()
        assert await slow[1].answer() == b""
        slow[0].writer.write(b"3456789")
        assert await slow[0].answer() == b"200ok"


async def test_one_address_leaves_others_room() -> None:
    async with site("", each=2, connections=PLACES) as one:
        await one.hold(2)
        assert not await one.serves()
        async with asyncio.timeout(SOON):
            reader, writer = await asyncio.open_connection("127.0.0.1", one.server.port, local_addr=("127.0.0.2", 0))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await Visitor(reader, writer).answer() == b"200ok"
        writer.close()
