"""Devices that only boot: each request on a connection of its own, as firmware sends it."""

import asyncio
from dataclasses import dataclass
from typing import cast

from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import find_profile

PATIENCE = 30.0
"""Seconds; firmware's own limit for an answer."""
_PATH = "/xiaozhi/ota/"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device got: the status, or why there was none, and how long after its time."""

    status: str
    seconds: float


class _Visit(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self._said = bytearray()
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._said += data

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(bytes(self._said))


def request(mac: str, port: int) -> bytes:
    """Return all that a device sends."""
    identity, profile = Identity.of(mac), find_profile("P1")
    body = system_info(identity, profile).encode()
    sent = {"Host": f"{LOOPBACK}:{port}", **headers(identity, profile), "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST {_PATH} HTTP/1.1\r\n{head}\r\n".encode() + body


async def ask(port: int, request: bytes, due: float) -> Answer:
    """Send a request and wait until the server has closed; `due` is the time from which the wait counts."""
    loop, status = asyncio.get_running_loop(), "no answer"
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            transport, visit = await loop.create_connection(lambda: _Visit(request), LOOPBACK, port)
            said = await visit.answer
        status = said[9:12].decode("ascii", "replace") or status
    except OSError as error:  # TimeoutError is one
        status = type(error).__name__
    finally:
        if transport is not None:
            transport.abort()
    return Answer(status, loop.time() - due)
