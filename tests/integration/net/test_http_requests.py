"""Which requests the HTTP servers take: none that two servers could read differently, and none that has no end."""

import asyncio
import gc
import re
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fleet.adapters.net.http.connection import LARGEST_HEAD, MOST_HEADERS, MOST_WAITING, BoundedConnection, Bounds
from fleet.adapters.net.http.server import HttpServer
from fleet.ground.tasks import running
from tests.support.garbage import no_garbage

SOON = 240.0
HOST = b"Host: x\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with what was understood."""
    body, more = b"", True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        body, more = body + event.get("body", b""), event.get("more_body", False)
    named = b"".join(value for name, value in scope["headers"] if name == b"x-named")
    said = b"<%s %s %s>" % (scope["method"].encode(), scope["path"].encode(), body + named)
    length = (b"content-length", str(len(said)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": said})


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    one = HttpServer(cast("FastAPI", echo), "127.0.0.1", 0, bounds=Bounds(head=SOON))
    async with running("http", one.run):
        yield one


async def ask(server: HttpServer, *pieces: bytes) -> tuple[list[int], list[str]]:
    """Return the statuses and what was understood, of all answers until the server closes the connection."""
    async with asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            said = await reader.read()
        except ConnectionError:
            said = b""
        finally:
            writer.close()
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", said)]
    return statuses, [found.decode() for found in re.findall(rb"<(.*?)>", said, re.DOTALL)]


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /a HTTP/1.1\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
        b"GET /a HTTP/0.9\r\n" + HOST + b"\r\n",
        b"GET /a HTTP/2.0\r\n" + HOST + b"\r\n",
        b"GET /a HTTP/1.2\r\n" + HOST + b"\r\n",
        b"GET /a HTTP/1.1\nHost: x\n\n",
        b"GET /a HTTP/1.1\r\n" + HOST + b"X : y\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + HOST + b"X: y\r\n z\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + HOST + b"X: a\x01b\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + HOST + b"X: a\rb\r\n\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nab",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: +2\r\n\r\nab",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\nab",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: identity\r\n\r\n",
        b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /a HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"2\nab\r\n0\r\n\r\n",
        CHUNKED + b"2;a\nab\r\n0\r\n\r\n",
        CHUNKED + b"0x2\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"10000000000000002\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nabXX0\r\n\r\n",
        b"GET http://evil/a HTTP/1.1\r\n" + HOST + b"\r\n",
        b"CONNECT x:1 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_refused(server: HttpServer, request_: bytes) -> None:
    assert await ask(server, request_ + NEXT) == ([400], [])
    assert server.bounds.counts["malformed request"] == 1


async def test_a_tunnel_to_a_path_reaches_no_application() -> None:
    reached: list[str] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["method"])
        await echo(scope, receive, send)

    server = HttpServer(cast("FastAPI", note), "127.0.0.1", 0, bounds=Bounds(head=SOON))
    async with running("http", server.run):
        assert await ask(server, b"CONNECT /a HTTP/1.1\r\n" + HOST + b"\r\n" + NEXT) == ([400], [])
    assert reached == []


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"GET /a HTTP/1.1\r\n" + HOST, b"X-More: x\r\n"),
        (b"GET /a HTTP/1.1\r\n" + HOST + b"X-More: ", b"x"),
        (b"GET /", b"x"),
        (CHUNKED + b"2;", b"x"),
        (CHUNKED + b"0\r\n", b"X-More: x\r\n"),
    ],
)
async def test_a_head_without_an_end_is_refused(server: HttpServer, head: bytes, more: bytes) -> None:
    statuses, understood = await ask(server, head, *[more * (1024 // len(more))] * (LARGEST_HEAD // 512))
    assert statuses in ([400], [])  # a reset may be faster than the answer
    assert understood == []
    assert server.bounds.counts["malformed request"] == 1


@pytest.mark.parametrize("end", [b"", b"\r\n"])
async def test_a_head_of_too_many_headers_is_refused(server: HttpServer, end: bytes) -> None:
    begin = b"GET /a HTTP/1.1\r\n" + HOST
    assert await ask(server, begin + b"a:b\r\n" * (MOST_HEADERS + 1) + end) == ([400], [])
    assert await ask(server, begin + b"a:b\r\n" * (MOST_HEADERS - 2) + b"Connection: close\r\n\r\n") == (
        [200],
        ["GET /a "],
    )


async def test_a_head_that_is_too_large_is_refused_also_if_it_comes_as_one_piece(server: HttpServer) -> None:
    large = b"x" * LARGEST_HEAD
    for head in (b"GET /a HTTP/1.1\r\n" + HOST + b"A: " + large, b"GET /" + large + b" HTTP/1.1\r\nHost: x"):
        assert await ask(server, b"GET /before HTTP/1.1\r\n" + HOST + b"\r\n" + head + b"\r\n\r\n") in (
            ([200, 400], ["GET /before "]),
            ([], []),
        )


async def test_a_request_for_another_protocol_is_answered_in_this_one(server: HttpServer) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    first = b"POST /a HTTP/1.1\r\n" + HOST + upgrade + b"Content-Length: 2\r\n\r\nab"
    second = b"POST /b HTTP/1.1\r\n" + HOST + upgrade + b"Transfer-Encoding: chunked\r\n\r\n2\r\ncd\r\n0\r\n\r\n"
    wanted = ([200] * 3, ["POST /a ab", "POST /b cd", "GET /next "])
    assert await ask(server, first + second + NEXT) == wanted
    assert await ask(server, *[bytes([byte]) for byte in first + second], NEXT) == wanted


async def test_a_trailer_is_no_header(server: HttpServer) -> None:
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nX-Named: head\r\n\r\n")
    ends = b"2\r\nab\r\n0\r\nX-Named: trailer\r\n\r\n"
    wanted = ([200] * 3, ["POST /a abhead", "POST /a ab", "GET /next "])
    assert await ask(server, head + ends + CHUNKED + ends + NEXT) == wanted


async def test_requests_that_wait_are_answered_in_order_up_to_a_bound(server: HttpServer) -> None:
    waiting = b"GET /a HTTP/1.1\r\n" + HOST + b"\r\n"
    assert await ask(server, waiting * MOST_WAITING + NEXT) == (
        [200] * (MOST_WAITING + 1),
        [*["GET /a "] * 8, "GET /next "],
    )
    assert await ask(server, waiting * (MOST_WAITING + 2)) == ([], [])
    assert server.bounds.counts["malformed request"] == 1


async def test_chunks_of_one_byte_are_passed_on_together(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[int] = []
    pass_on = HttpToolsProtocol.on_body

    def count(self: HttpToolsProtocol, body: bytes) -> None:
        passed.append(len(body))
        pass_on(self, body)

    monkeypatch.setattr(HttpToolsProtocol, "on_body", count)
    many = 20_000
    body = b"1\r\nx\r\n" * many + b"0\r\n\r\n"
    assert await ask(server, CHUNKED + body + NEXT) == ([200, 200], [f"POST /a {'x' * many}", "GET /next "])
    assert sum(passed) == many
    assert len(passed) < many // 100


async def test_a_body_that_the_application_left_unread_is_not_kept_after_the_answer() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    server = HttpServer(cast("FastAPI", refuse), "127.0.0.1", 0, bounds=Bounds(head=SOON))
    async with running("http", server.run), asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 50000\r\n\r\n" + bytes(40_000))
        assert b"404" in await reader.readuntil(b"\r\n\r\n")
        [connection] = server._server.server_state.connections
        assert connection.cycle.response_complete
        assert not connection.cycle.body
        writer.close()


async def reset(server: HttpServer, sent: bytes, until: str) -> None:
    """Send this, wait until the server has it or has answered it, and cut the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    if until == "answered":
        await reader.readexactly(1)
    while not server.bounds.here:
        await asyncio.sleep(0.01)
    cut = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, cut)
    writer.transport.abort()
    while server.bounds.here:
        await asyncio.sleep(0.01)


async def test_a_client_that_resets_its_connection_leaves_no_garbage_and_no_timer(server: HttpServer) -> None:
    begun = CHUNKED + b"2\r\nab\r\n"
    async with asyncio.timeout(SOON):
        await reset(server, begun + b"0\r\n\r\n", "answered")  # what is made once
        with no_garbage():
            await reset(server, begun, "read")
        gc.collect()
        await reset(server, begun + b"0\r\n\r\n", "answered")
        assert not [one for one in gc.get_objects() if isinstance(one, BoundedConnection)]


async def test_a_fault_is_not_the_answer_to_the_request_before_it(server: HttpServer) -> None:
    statuses, _ = await ask(server, b"GET /a HTTP/1.1\r\n" + HOST + b"\r\nNO\r\n\r\n")
    assert 400 not in statuses[:1]


async def test_what_follows_the_last_request_is_not_answered(server: HttpServer) -> None:
    assert await ask(server, NEXT + NEXT) == ([200], ["GET /next "])


async def test_names_of_headers_have_capitals(server: HttpServer) -> None:
    async with asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        expects = b"POST /a HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab"
        writer.write(expects + NEXT)
        said = await reader.read()
        writer.close()
    assert said.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert said.count(b"\r\nContent-Length: ") == 2
    assert b"\r\nConnection: close\r\n" in said
    assert not re.search(rb"\n[a-z]", said)
