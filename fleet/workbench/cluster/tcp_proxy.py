"""Forwards a fixed TCP port to the processes that serve now, like a Service in Kubernetes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from fleet.ground.errors import ConfigError
from fleet.ground.tasks import isolate
from fleet.workbench.local_servers.ports import LOOPBACK

_CHUNK = 1 << 16
_BACKLOG = 1024


class TcpProxy:
    """Forwards each connection to one of the backends, in turn; `run_tcp_proxy` makes one.

    A connection stays with its backend until either side closes it.

    Args:
        port: Where it listens, on the loopback address.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.backends: tuple[int, ...] = ()
        """Ports of the processes that accept new connections."""
        self._connections = count()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until it ends."""
        try:
            await isolate("proxy", self._forward(reader, writer))
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is None:
            return
        backend_reader, backend_writer = backend
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, backend_writer), name="proxy in")
                group.create_task(_copy(backend_reader, writer), name="proxy out")
        finally:
            backend_writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the next backend, or to the first after it that answers; return None if none does."""
        backends, first = self.backends, next(self._connections)
        for step in range(len(backends)):
            try:
                return await asyncio.open_connection(LOOPBACK, backends[(first + step) % len(backends)])
            except OSError:
                continue
        return None


@asynccontextmanager
async def run_tcp_proxy(port: int) -> AsyncIterator[TcpProxy]:
    """Listen on a port of the loopback address during the block; close all connections at its end.

    Raises:
        ConfigError: The port is taken.
    """
    proxy = TcpProxy(port)
    async with asyncio.TaskGroup() as connections:
        tasks: set[asyncio.Task[None]] = set()

        def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = connections.create_task(proxy.handle(reader, writer), name=f"proxy {port}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            server = await asyncio.start_server(handle, LOOPBACK, port, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror or error}") from error
        try:
            yield proxy
        finally:
            server.close()
            for task in tasks:
                task.cancel()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy bytes until the end of the source; if one connection breaks, close the other."""
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
        if not sink.is_closing() and sink.can_write_eof():
            sink.write_eof()
    except OSError:
        sink.close()
