"""A STUN server on the loopback: answers binding requests as it is told."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from typing import cast

COOKIE = 0x2112A442

Answer = Callable[[bytes, tuple[str, int]], bytes | None]
"""Makes the answer to a request from an address; None keeps silent."""


def message(kind: int, transaction: bytes, *attributes: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("!HH", one, len(value)) + value + bytes(-len(value) % 4) for one, value in attributes)
    return struct.pack("!HHI", kind, len(body), COOKIE) + transaction + body


def xored(host: str, port: int) -> bytes:
    return struct.pack("!xBHI", 1, port ^ (COOKIE >> 16), int(IPv4Address(host)) ^ COOKIE)


def tell(host: str | None = None, port: int | None = None) -> Answer:
    """Answer with an address, or with parts of the one that asked."""

    def answer(request: bytes, asked: tuple[str, int]) -> bytes:
        return message(0x0101, request[8:20], (0x0020, xored(host or asked[0], port or asked[1])))

    return answer


class StunServer(asyncio.DatagramProtocol):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked.append(data)
        answer = self._answer(data, addr)
        if answer is not None:
            self._transport.sendto(answer, addr)

    @property
    def place(self) -> tuple[str, int]:
        host, port = self._transport.get_extra_info("sockname")
        return host, port

    @property
    def name(self) -> str:
        return "{}:{}".format(*self.place)


@asynccontextmanager
async def stun_server(answer: Answer) -> AsyncIterator[StunServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: StunServer(answer), local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()
