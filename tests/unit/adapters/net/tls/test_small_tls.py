"""What one TLS connection holds, with the network in memory."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.net.tls import small_tls
from fleet.adapters.net.tls.small_tls import READ_AT_ONCE, WITHOUT_DATA, SmallTls
from tests.support.certificates import Pki

MESSAGE = bytes(range(256)) * 64
"""As large as a record may be."""


class Network(asyncio.Transport):
    """What the server has below TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.closed, self.sent = True, False, bytearray()

    def write(self, data: Any) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


class Application(asyncio.Protocol):
    """Notes what it is given."""

    transport: Any
    ended = paused = False

    def __init__(self) -> None:
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> None:
        self.ended = True

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


class Connection:
    """Both ends of a connection after its handshake."""

    def __init__(self, pki: Pki, buffer: bytearray) -> None:
        self.application, self.network = Application(), Network()
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        context = pki.server().context
        self.server = SmallTls(loop, self.application, context, done, server_side=True, buffer=buffer)
        self._to_server, self._to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = pki.client.wrap_bio(self._to_client, self._to_server, server_hostname="localhost")
        self.server.connection_made(self.network)
        while not done.done():
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.arrive(self._to_server.read())
            self._to_client.write(bytes(self.network.sent))
            self.network.sent.clear()

    def encrypted(self, *messages: bytes) -> bytes:
        """Return what a client sends for these."""
        for message in messages:
            self.client.write(message)
        return self._to_server.read()

    def arrive(self, sent: bytes) -> int:
        """Let bytes come as long as the server reads; return how many it has not read."""
        while sent and self.network.reads:
            place = self.server.get_buffer(len(sent))
            size = min(len(place), len(sent))
            place[:size] = sent[:size]
            sent = sent[size:]
            self.server.buffer_updated(size)
        return len(sent)


BUFFER = bytearray(READ_AT_ONCE)


@contextmanager
def connected(pki: Pki) -> Iterator[Connection]:
    one = Connection(pki, BUFFER)
    yield one
    one.server.connection_lost(None)


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    with connected(Pki(tmp_path)) as one:
        yield one


async def test_what_comes_in_pieces_of_any_size_arrives_as_it_was(connection: Connection) -> None:
    sent = connection.encrypted(b"a", MESSAGE, b"b" * 100, MESSAGE)
    assert len(sent) > 2 * READ_AT_ONCE
    connection.arrive(sent[:3])
    connection.arrive(sent[3:9000])
    assert connection.arrive(sent[9000:]) == 0
    assert connection.application.data == b"a" + MESSAGE + b"b" * 100 + MESSAGE


async def test_while_the_application_pauses_no_more_than_one_read_is_held(connection: Connection) -> None:
    sent = connection.encrypted(*[MESSAGE] * 40)
    connection.application.transport.pause_reading()
    assert connection.arrive(sent) == len(sent) - READ_AT_ONCE
    assert connection.application.transport.get_read_buffer_size() == READ_AT_ONCE
    for _ in range(2):
        connection.application.transport.resume_reading()
        await asyncio.sleep(0)
    assert connection.network.reads
    assert connection.arrive(sent[READ_AT_ONCE:]) == 0
    assert connection.application.data == MESSAGE * 40


async def test_a_byte_that_waits_for_the_application_is_enough_to_read_no_more(connection: Connection) -> None:
    connection.application.transport.pause_reading()
    connection.arrive(connection.encrypted(b"a"))
    assert not connection.network.reads


async def test_connections_share_a_buffer_and_do_not_see_what_others_sent(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with connected(pki) as one, connected(pki) as other:
        sent = one.encrypted(MESSAGE), other.encrypted(MESSAGE[::-1])
        for piece in range(0, len(sent[0]), 1000):
            one.arrive(sent[0][piece : piece + 1000])
            other.arrive(sent[1][piece : piece + 1000])
        assert (one.application.data, other.application.data) == (MESSAGE, MESSAGE[::-1])
        for each in (one, other):
            place = each.server.get_buffer(2**18)
            assert place.obj is BUFFER and len(place) == READ_AT_ONCE


async def test_a_client_whose_bytes_bring_nothing_is_ended(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_tls, "WITHOUT_DATA", 10_000)
    for _ in range(3):
        sent = connection.encrypted(MESSAGE[:9000])
        connection.arrive(sent[:9000])
        connection.arrive(sent[9000:])
    assert (connection.application.data, connection.network.closed) == (MESSAGE[:9000] * 3, False)
    connection.arrive(connection.encrypted(MESSAGE)[:10_001])
    assert connection.network.closed
    assert len(connection.application.data) == 27_000


async def test_the_largest_records_in_pieces_are_far_from_that(connection: Connection) -> None:
    sent = connection.encrypted(*[MESSAGE] * 20)
    for piece in range(0, len(sent), 700):
        connection.arrive(sent[piece : piece + 700])
    assert connection.application.data == MESSAGE * 20
    assert len(sent) > 6 * WITHOUT_DATA


async def test_the_application_pauses_when_64_kib_of_an_answer_wait(connection: Connection) -> None:
    connection.server.pause_writing()
    for _ in range(3):
        connection.application.transport.write(MESSAGE)
        assert not connection.application.paused
    connection.application.transport.write(MESSAGE)
    assert connection.application.paused
    connection.server.resume_writing()
    assert not connection.application.paused
    assert len(connection.network.sent) > 4 * len(MESSAGE)


async def test_the_end_that_a_client_announces_ends_the_connection(connection: Connection) -> None:
    sent = connection.encrypted(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        connection.client.unwrap()
    connection.arrive(sent + connection.encrypted())
    await asyncio.sleep(0)
    assert connection.application.data == b"last"
    assert connection.application.ended and connection.network.closed
