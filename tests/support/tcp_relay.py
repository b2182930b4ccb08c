"""A TCP relay between a client and a server that records, freezes and cuts: what a network does to a connection."""

import asyncio
import ssl
from types import TracebackType


class TcpRelay:
    """Listens on a free loopback port and passes bytes on.

    Args:
        port: Of the server on loopback.
        tls: What the relay shows to clients; plain TCP without it.
    """

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._target = port
        self._tls = tls
        self._flows = asyncio.Event()
        self._flows.set()
        self._held: dict[int, asyncio.Event] = {}
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.sent: list[bytearray] = []
        """What the clients sent, one entry a connection."""

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> "TcpRelay":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        async with asyncio.timeout(240):
            await self._server.wait_closed()

    def freeze(self) -> None:
        """Pass nothing on any more, in either direction; the connections stay."""
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def hold(self, number: int) -> None:
        """Pass on nothing of one connection, the first being 0; the others flow."""
        self._held.setdefault(number, asyncio.Event()).clear()

    def release(self, number: int) -> None:
        self._held.setdefault(number, asyncio.Event()).set()

    def cut(self) -> None:
        """Reset all connections, as the death of a client or a router does."""
        self._flows.set()
        for held in self._held.values():
            held.set()
        for writer in self._writers:
            if not writer.transport.is_closing():
                writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        record, number = bytearray(), len(self.sent)
        self.sent.append(record)
        self._writers.append(writer)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.append(back)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass(reader, back, record, number))
            group.create_task(self._pass(there, writer, bytearray(), number))

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray, number: int
    ) -> None:
        try:
            while data := await reader.read(65536):
                record += data
                await self._flows.wait()
                if number in self._held:
                    await self._held[number].wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        # A frozen network does not pass on the end either.
        await self._flows.wait()
        writer.close()
