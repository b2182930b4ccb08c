"""A TCP port that stays while the processes behind it change, like a Service in Kubernetes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from fleet.ground.errors import ConfigError
from fleet.ground.tasks import isolate
from fleet.workbench.local_servers.ports import LOOPBACK

_PIECE = 1 << 16
_BACKLOG = 1024


class Door:
    """Passes each connection on to one of the processes that serve now; `open_door` makes one.

    A connection stays with its process until one of both ends it.

    Args:
        port: Where it listens, on the loopback address.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.targets: tuple[int, ...] = ()
        """Ports of the processes that take new connections."""
        self._turn = count()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection to its end."""
        try:
            await isolate("door", self._pass_on(reader, writer))
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await self._reach()
        if behind is None:
            return
        answers, questions = behind
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, questions), name="door in")
                group.create_task(_pump(answers, writer), name="door out")
        finally:
            questions.close()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the process whose turn it is, or to the next that answers."""
        targets, first = self.targets, next(self._turn)
        for step in range(len(targets)):
            try:
                return await asyncio.open_connection(LOOPBACK, targets[(first + step) % len(targets)])
            except OSError:
                continue
        return None


@asynccontextmanager
async def open_door(port: int) -> AsyncIterator[Door]:
    """Listen on a port of the loopback address during the block; at its end all connections are cut.

    Raises:
        ConfigError: The port is taken.
    """
    door = Door(port)
    async with asyncio.TaskGroup() as connections:
        tasks: set[asyncio.Task[None]] = set()

        def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = connections.create_task(door.meet(reader, writer), name=f"door {port}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            server = await asyncio.start_server(meet, LOOPBACK, port, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror or error}") from error
        try:
            yield door
        finally:
            server.close()
            for task in tasks:
                task.cancel()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more; a connection that one side breaks is closed for the other."""
    try:
        while data := await source.read(_PIECE):
            sink.write(data)
            await sink.drain()
        if not sink.is_closing() and sink.can_write_eof():
            sink.write_eof()
    except OSError:
        sink.close()
