"""A TCP relay on the loopback interface that delays or freezes the device's MQTT connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fleet.workbench.sim.network.latency import Latency

_BLOCK = 4096
_MOST_BLOCKS = 256
"""Under way in one direction; with more, nothing more is read until some came through."""

Blocks = asyncio.Queue[tuple[float, bytes]]


class TcpRelay:
    """Passes on, in order, what comes, later by the network's delay; and nothing while frozen.

    Args:
        host: Of the broker.
        port: Of the broker.
        clock: Monotonic seconds.
        latency: Delay of each piece; none without it.
    """

    def __init__(self, host: str, port: int, clock: Callable[[], float], latency: Latency | None) -> None:
        self._broker = host, port
        self._clock = clock
        self._latency = latency
        self._flows = asyncio.Event()
        self._flows.set()
        self._running: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TcpRelay"]:
        """Listen on a free port, `port`, inside the block."""
        async with asyncio.TaskGroup() as tasks:

            def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = tasks.create_task(self._pass_on(reader, writer), name="sim-tcp")
                self._running.add(task)
                task.add_done_callback(self._running.discard)

            server = await asyncio.start_server(take, "127.0.0.1", 0)
            self.port = int(server.sockets[0].getsockname()[1])
            try:
                yield self
            finally:
                server.close()
                for task in tuple(self._running):
                    task.cancel()

    def freeze(self) -> None:
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            await self._flows.wait()
            back, forth = await asyncio.open_connection(*self._broker)
            ends.append(forth)
            async with asyncio.TaskGroup() as tasks:
                for name, source, sink in (("up", reader, forth), ("down", back, writer)):
                    blocks: Blocks = asyncio.Queue(_MOST_BLOCKS)
                    tasks.create_task(self._read(source, blocks), name=f"sim-tcp-{name}-read")
                    tasks.create_task(self._write(sink, blocks), name=f"sim-tcp-{name}-write")
        except OSError:
            return
        finally:
            for end in ends:
                end.transport.abort()

    async def _read(self, source: asyncio.StreamReader, blocks: Blocks) -> None:
        block = b"-"
        while block:
            try:
                block = await source.read(_BLOCK)
            except OSError:
                block = b""
            now = self._clock()
            await blocks.put((now + (self._latency.delay(now) if self._latency else 0.0), block))

    async def _write(self, sink: asyncio.StreamWriter, blocks: Blocks) -> None:
        while True:
            due, block = await blocks.get()
            await asyncio.sleep(max(0.0, due - self._clock()))
            await self._flows.wait()
            if not block:
                sink.close()
                return
            with contextlib.suppress(OSError):
                sink.write(block)
                await sink.drain()
