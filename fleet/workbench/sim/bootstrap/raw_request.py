"""Bootstrap requests of many devices: each on a connection of its own, as firmware sends it, without an HTTP client.

An HTTP client would cost more CPU time than the server under test.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import cast

from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import Profile

PATIENCE = 30.0
"""Seconds; firmware's own limit for an answer."""
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d{1,12})")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device got: the status, or why there was none, and the seconds from when the request was due."""

    status: str
    seconds: float
    body: bytes = b""


class _Connection(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = bytearray()
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(bytes(self._received))


def request(mac: str, profile: Profile, host: str, path: str) -> bytes:
    """Return all bytes that a device sends; `host` is the header of this name."""
    identity = Identity.of(mac)
    body = system_info(identity, profile).encode()
    sent = {"Host": host, **headers(identity, profile), "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def download(path: str, host: str, mac: str) -> bytes:
    """Return all bytes of a device's request for a file."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nDevice-Id: {mac}\r\nConnection: close\r\n\r\n".encode()


async def ask(host: str, port: int, content: bytes, due: float, source: str = "") -> Answer:
    """Send a request and wait until the server has closed.

    Args:
        host: The server's.
        port: The server's.
        content: The request.
        due: When the wait began, on the loop's clock.
        source: The address from which it comes; any without it.
    """
    loop, status, received = asyncio.get_running_loop(), "no answer", b""
    local = (source, 0) if source else None
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            transport, connection = await loop.create_connection(
                lambda: _Connection(content), host, port, local_addr=local
            )
            received = await connection.answer
        status = received[9:12].decode("ascii", "replace") or status
    except OSError as error:  # TimeoutError is one
        status = type(error).__name__
    finally:
        if transport is not None:
            transport.abort()
    return Answer(status, loop.time() - due, _whole_body(received))


def _whole_body(received: bytes) -> bytes:
    """Return the body; nothing if it is shorter than it was said to be."""
    head, _, body = received.partition(b"\r\n\r\n")
    named = _LENGTH.search(head)
    return body if named is None or len(body) == int(named[1]) else b""
