"""Answers of HTTP servers: of models, voices and recognisers."""

import asyncio
from random import Random
from typing import Any

import httpx2

from fleet.adapters.http_connection import LARGEST_HEAD, HttpConnection
from tests.fuzz import damage
from tests.fuzz.target import Target

_ANSWERS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: t\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\nno such page",
    b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n",
)


def make_answer(random: Random) -> list[bytes]:
    data = random.choice(_ANSWERS)
    for _ in range(random.randrange(4)):
        data = damage.damage_bytes(random, data, random.choice(_ANSWERS))
    return damage.chunks(random, data)


def check_answer(chunks: list[bytes]) -> None:
    """Where an answer is cut does not matter, what is read was sent, and one that ended leaves nothing for the next."""
    whole = b"".join(chunks)
    found = asyncio.run(_read(chunks))
    assert found == asyncio.run(_read([whole] if whole else []))
    status, body = found
    read = iter(whole)
    assert all(byte in read for byte in body)
    assert len(body) <= LARGEST_HEAD
    assert status == 0 or 200 <= status <= 999


async def _read(chunks: list[bytes]) -> tuple[int, bytes]:
    """Return status and body; 0 and nothing of an answer that broke off."""
    connection, wire = HttpConnection(), _Wire()
    connection.connection_made(wire)
    asyncio.get_running_loop().call_soon(_feed, connection, chunks, wire)
    body = b""
    try:
        await connection.ask(b"")
        while piece := await connection.read(0):
            body += piece
    except httpx2.TransportError:
        return 0, b""
    assert not connection.rest()
    return connection.status, body


def _feed(connection: HttpConnection, chunks: list[bytes], wire: "_Wire") -> None:
    for chunk in chunks:
        if chunk and not wire.is_closing():
            connection.data_received(chunk)
    connection.connection_lost(None)


class _Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self._closed = False

    def write(self, data: Any) -> None:
        return

    def abort(self) -> None:
        self._closed = True

    def is_closing(self) -> bool:
        return self._closed


TARGETS = (Target("http", make_answer, check_answer, 5),)
