"""Bootstrap requests of many devices: each on a connection of its own, as firmware sends it, without an HTTP client.

An HTTP client would cost more CPU time than the server under test.
"""

import asyncio
from dataclasses import dataclass
from typing import cast

from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import Profile

PATIENCE = 30.0
"""Seconds; firmware's own limit for an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device got: the status, or why there was none, and the seconds from when the request was due."""

    status: str
    seconds: float


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


async def ask(host: str, port: int, content: bytes, due: float) -> Answer:
    """Send a request and wait until the server has closed; `due`, on the loop's clock, is when the wait began."""
    loop, status = asyncio.get_running_loop(), "no answer"
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            transport, connection = await loop.create_connection(lambda: _Connection(content), host, port)
            received = await connection.answer
        status = received[9:12].decode("ascii", "replace") or status
    except OSError as error:  # TimeoutError is one
        status = type(error).__name__
    finally:
        if transport is not None:
            transport.abort()
    return Answer(status, loop.time() - due)
