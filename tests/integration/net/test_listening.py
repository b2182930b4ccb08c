"""An accepted connection sends what is written at once."""

import asyncio
import socket

from fleet.adapters.net.listening import listen
from tests.support.ports import LOOPBACK


async def test_two_short_writes_wait_for_no_acknowledgement() -> None:
    accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            found: socket.socket = transport.get_extra_info("socket")
            accepted.set_result(bool(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))

    server = await asyncio.get_running_loop().create_server(Connection, sock=listen(LOOPBACK, 0, 8))
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, server.sockets[0].getsockname()[1])
        assert await accepted
        writer.close()
    finally:
        server.close()
