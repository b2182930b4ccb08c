"""What is received is acknowledged at once, by both ends of the way to the broker."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fleet.adapters.net.mqtt.connection import MqttConnection
from fleet.roles.front.leg import Leg

PONG = b"\xd0\x00"
QUICKACK = getattr(socket, "TCP_QUICKACK", None)

pytestmark = pytest.mark.skipif(QUICKACK is None, reason="only Linux can be told")


@asynccontextmanager
async def connected(
    make: Callable[[], asyncio.Protocol],
) -> AsyncIterator[tuple[asyncio.Transport, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect a protocol to a server; return its transport, and the server's end."""
    arrived: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.put_nowait((reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server, asyncio.timeout(240):
        port = server.sockets[0].getsockname()[1]
        transport, _ = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", port)
        reader, writer = await arrived.get()
        try:
            yield transport, reader, writer
        finally:
            transport.abort()
            writer.transport.abort()


@pytest.mark.parametrize("kind", ["front", "worker"])
async def test_a_conversation_does_not_make_acknowledgements_late(kind: str) -> None:
    """After an exchange Linux takes a connection for a dialogue and acknowledges up to 40 ms late."""
    got = asyncio.Event()

    def make() -> asyncio.Protocol:
        if kind == "front":
            return Leg(lambda _: got.set(), lambda: None, quick_ack=True)

        class Heard(MqttConnection):
            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                got.set()

        return Heard(60, lambda _: None)

    async with connected(make) as (transport, reader, writer):
        for _ in range(4):
            got.clear()
            writer.write(PONG)
            await got.wait()
            assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, QUICKACK) == 1
            transport.write(PONG)
            await reader.readexactly(2)
