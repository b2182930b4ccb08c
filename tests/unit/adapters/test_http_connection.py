"""A connection reads what servers send, however it is cut, and bounds what a parser does not."""

import asyncio
import tracemalloc
from collections.abc import Sequence

import httpx2
import pytest

from fleet.adapters.http_connection import LARGEST_HEAD, MOST_UNREAD, HttpConnection

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n"
WHOLE = CHUNKED + b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: t\r\n\r\n"
SOON = 5.0


class Wire(asyncio.Transport):
    """What a connection does with its transport."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = self.paused = False
        self.unsent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent


async def asked(*data: bytes) -> tuple[HttpConnection, Wire]:
    """Return a connection whose request got this answer; the head is complete."""
    connection, wire = HttpConnection(), Wire()
    connection.connection_made(wire)
    asyncio.get_running_loop().call_soon(feed, connection, data)
    await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
    return connection, wire


def feed(connection: HttpConnection, data: Sequence[bytes]) -> None:
    for piece in data:
        connection.data_received(piece)


async def body_of(connection: HttpConnection) -> bytes:
    body = b""
    while piece := await connection.read(asyncio.get_running_loop().time() + SOON):
        body += piece
    return body


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
async def test_an_answer_may_be_cut_anywhere(cut: int) -> None:
    connection, wire = await asked(WHOLE[:cut], WHOLE[cut:])
    assert (connection.status, connection.headers["content-type"]) == (200, "text/plain")
    assert await body_of(connection) == b"hello, world"
    assert connection.rest()
    assert connection.alive
    assert wire.written


async def test_answers_follow_each_other_on_one_connection() -> None:
    connection, _ = await asked(WHOLE)
    assert await body_of(connection) == b"hello, world"
    assert connection.rest()
    asyncio.get_running_loop().call_soon(feed, connection, [b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"])
    await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
    assert (connection.status, "content-type" in connection.headers) == (503, False)
    assert await body_of(connection) == b"no"


async def test_informational_answers_are_passed_over() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    connection, _ = await asked(b"HTTP/1.1 100 Continue\r\n\r\n", hints, WHOLE)
    assert (connection.status, "link" in connection.headers) == (200, False)


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    connection, _ = await asked(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    connection.connection_lost(None)
    assert await body_of(connection) == b"hello"
    assert not connection.rest()


@pytest.mark.parametrize(
    "answer", [CHUNKED + b"5\r\nhello\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", CHUNKED + b"5\r\nhe"]
)
async def test_a_body_that_ends_too_early_is_a_fault_after_what_came(answer: bytes) -> None:
    connection, _ = await asked(answer)
    connection.connection_lost(None)
    assert await connection.read(asyncio.get_running_loop().time() + SOON)
    with pytest.raises(httpx2.ReadError, match="closed the connection"):
        await body_of(connection)


async def test_a_body_without_a_length_is_not_complete_when_the_connection_broke() -> None:
    connection, _ = await asked(b"HTTP/1.1 200 OK\r\n\r\nhel")
    connection.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(httpx2.ReadError, match="reset"):
        await body_of(connection)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="not HTTP"):
        await asked(data)


async def test_a_chunk_without_a_size_ends_the_connection() -> None:
    connection, wire = await asked(CHUNKED + b"zz\r\n")
    with pytest.raises(httpx2.RemoteProtocolError):
        await body_of(connection)
    assert wire.aborted


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-More: ", b"x"),
        (CHUNKED + b"5;", b"x"),
        (CHUNKED + b"0\r\n", b"X-More: x\r\n"),
        (CHUNKED + b"0\r\nX-More: ", b"x"),
    ],
)
async def test_what_never_comes_to_a_body_is_refused(head: bytes, more: bytes) -> None:
    piece = more * (1024 // len(more))
    with pytest.raises(httpx2.RemoteProtocolError, match="too large"):
        connection, wire = await asked(head, *[piece] * (LARGEST_HEAD // len(piece) + 1))
        await body_of(connection)
        pytest.fail(f"not refused: {wire.aborted}")


async def test_headers_of_one_name_count_once() -> None:
    connection, _ = await asked(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: a\r\nx: b\r\n\r\n")
    assert connection.headers["x"] == "a"


async def test_reading_pauses_until_the_body_is_read() -> None:
    connection, wire = await asked(CHUNKED)
    piece = b"x" * 65_536
    while not wire.paused:
        connection.data_received(b"%x\r\n%s\r\n" % (len(piece), piece))
    assert len(await connection.read(asyncio.get_running_loop().time() + SOON)) <= MOST_UNREAD + len(piece)
    assert not wire.paused


async def test_unread_chunks_of_one_byte_take_no_more_memory_than_large_ones() -> None:
    connection, wire = await asked(CHUNKED)
    chunks = b"1\r\nx\r\n" * 8_192
    tracemalloc.start()
    try:
        while not wire.paused:
            connection.data_received(chunks)
        assert tracemalloc.get_traced_memory()[0] < 4 * MOST_UNREAD
    finally:
        tracemalloc.stop()
    assert len(await connection.read(asyncio.get_running_loop().time() + SOON)) > MOST_UNREAD
    assert not wire.paused


async def test_data_that_nobody_asked_for_ends_the_connection() -> None:
    connection, wire = await asked(WHOLE)
    assert await body_of(connection) == b"hello, world"
    assert connection.rest()
    connection.data_received(WHOLE)
    assert wire.aborted
    assert not connection.alive


@pytest.mark.parametrize("data", [(WHOLE + WHOLE,), (WHOLE, WHOLE)])
async def test_a_second_answer_to_one_request_is_not_taken(data: tuple[bytes, ...]) -> None:
    connection, _ = await asked(*data)
    assert await body_of(connection) == b"hello, world"
    assert not connection.rest() or not connection.alive


async def test_a_connection_rests_only_after_all_of_both_messages() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    connection, _ = await asked(closing)
    assert not connection.rest()
    connection, wire = await asked(WHOLE)
    assert not connection.rest()
    await body_of(connection)
    wire.unsent = 1
    assert not connection.rest()


async def test_a_deadline_counts_for_what_is_not_there_yet() -> None:
    connection, _ = await asked(CHUNKED + b"5\r\nhello\r\n")
    past = asyncio.get_running_loop().time() - 1
    assert await connection.read(past) == b"hello"
    with pytest.raises(TimeoutError):
        await connection.read(past)


async def test_a_closed_connection_takes_no_request() -> None:
    connection, _ = await asked(WHOLE)
    connection.connection_lost(None)
    with pytest.raises(httpx2.WriteError):
        await connection.ask(b"GET / HTTP/1.1\r\n\r\n")
