"""What connections of an HTTP server with TLS hold while their clients or its application wait."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI

from fleet.adapters.net.http.connection import BoundedConnection, Bounds
from fleet.adapters.net.http.request_body import BODY_AHEAD
from fleet.adapters.net.http.tls_server import MOST_HANDSHAKES, MOST_WITH_TLS, HttpsServer
from fleet.adapters.net.tls.small_tls import READ_AT_ONCE
from fleet.ground.tasks import running
from tests.support.certificates import Pki

SOON = 240.0
BODY = bytes(range(250)) * 2400
ANSWER = bytes(range(256)) * 64 * 1024
"""More than the kernel takes."""


class App:
    """Reads a body only when it may, and answers with its digest; a GET it answers with much."""

    def __init__(self) -> None:
        self.go, self.sent = asyncio.Event(), 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = ANSWER
        if scope["method"] == "POST":
            await self.go.wait()
            seen, more = hashlib.sha256(), True
            while more:
                event = await receive()
                seen.update(event["body"])
                more = event["more_body"]
            answer = seen.digest()
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for begin in range(0, len(answer), 2**16):
            piece = answer[begin : begin + 2**16]
            self.sent += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": begin + len(piece) < len(answer)})


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def server(app: App, pki: Pki) -> AsyncIterator[HttpsServer]:
    bounds = Bounds(head=SOON, unread=SOON)
    one = HttpsServer(cast("FastAPI", app), "127.0.0.1", 0, pki.server(), bounds=bounds)
    async with running("https", one.run):
        yield one


def only(server: HttpsServer) -> BoundedConnection | None:
    return cast("BoundedConnection | None", next(iter(server._server.server_state.connections), None))


async def test_a_body_that_nobody_reads_stays_with_the_client_and_then_arrives_whole(
    app: App, server: HttpsServer, pki: Pki
) -> None:
    async with asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=pki.client)
        writer.write(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
        while not ((one := only(server)) and (waiting := cast("Any", one.transport).get_read_buffer_size())):
            await asyncio.sleep(0.01)
        assert waiting <= READ_AT_ONCE
        assert len(one.cycle.body) <= BODY_AHEAD + READ_AT_ONCE
        app.go.set()
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(32) == hashlib.sha256(BODY).digest()
        writer.transport.abort()


async def test_an_answer_that_nobody_reads_stays_with_the_application_and_then_arrives_whole(
    app: App, server: HttpsServer, pki: Pki
) -> None:
    async with asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=pki.client)
        cast("Any", writer.transport).pause_reading()
        writer.write(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        while not ((one := only(server)) and one.flow.write_paused):
            await asyncio.sleep(0.01)
        assert cast("Any", one.transport).get_write_buffer_size() < 3 * 2**16
        cast("Any", writer.transport).resume_reading()
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        assert app.sent == len(ANSWER)
        writer.transport.abort()


async def test_a_server_with_tls_has_fewer_connections_and_handshakes(app: App, pki: Pki) -> None:
    server = HttpsServer(cast("FastAPI", app), "127.0.0.1", 0, pki.server())
    assert server.bounds.connections == MOST_WITH_TLS < Bounds().connections
    async with running("https", server.run), asyncio.timeout(SOON):
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(MOST_HANDSHAKES + 1)]
        assert await silent[0][0].read() == b""
        assert server.counts["tls full"] >= 1
        for _, writer in silent:
            writer.transport.abort()
