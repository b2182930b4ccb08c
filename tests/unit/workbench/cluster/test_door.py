"""The port that stays, with small servers behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from fleet.ground.errors import ConfigError
from fleet.workbench.cluster import door as door_module
from fleet.workbench.cluster.door import Door, open_door
from fleet.workbench.local_servers.ports import LOOPBACK, choose

LIMIT = 60


@asynccontextmanager
async def server(name: str) -> AsyncIterator[int]:
    """Run one that answers every line with its name and the line, and give its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(name.encode() + b" " + line)
        writer.close()

    async with asyncio.TaskGroup() as group:
        listening = await asyncio.start_server(lambda *both: group.create_task(serve(*both)) and None, LOOPBACK, 0)
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()


@asynccontextmanager
async def opened() -> AsyncIterator[Door]:
    async with asyncio.timeout(LIMIT), open_door(choose()) as door:
        yield door


class Visitor:
    """A connection through a door."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def enter(cls, door: Door) -> "Visitor":
        return cls(*await asyncio.open_connection(LOOPBACK, door.port))

    async def ask(self, words: str = "hi") -> str:
        self._writer.write(f"{words}\n".encode())
        return (await self._reader.readline()).decode().strip()

    async def say_goodbye(self) -> bytes:
        """End this direction, and return what still comes in the other."""
        self._writer.write_eof()
        return await self._reader.read()

    def leave(self) -> None:
        self._writer.close()


async def test_a_connection_stays_with_its_process_when_new_ones_go_elsewhere() -> None:
    async with opened() as door, server("old") as old, server("new") as new:
        door.targets = (old,)
        first = await Visitor.enter(door)
        assert await first.ask() == "old hi"
        door.targets = (new,)
        second = await Visitor.enter(door)
        assert await second.ask() == "new hi"
        assert await first.ask("again") == "old again"
        for visitor in (first, second):
            visitor.leave()


async def test_connections_are_spread_over_all_processes() -> None:
    async with opened() as door, server("one") as one, server("two") as two:
        door.targets = (one, two)
        visitors = [await Visitor.enter(door) for _ in range(4)]
        assert sorted([await visitor.ask() for visitor in visitors]) == ["one hi", "one hi", "two hi", "two hi"]
        for visitor in visitors:
            visitor.leave()


async def test_a_process_that_does_not_listen_yet_is_passed_over() -> None:
    async with opened() as door, server("up") as up:
        door.targets = (choose(), up)
        visitors = [await Visitor.enter(door) for _ in range(2)]
        assert [await visitor.ask() for visitor in visitors] == ["up hi", "up hi"]
        for visitor in visitors:
            visitor.leave()


async def test_without_a_process_a_visitor_is_sent_away() -> None:
    async with opened() as door:
        visitor = await Visitor.enter(door)
        assert await visitor.say_goodbye() == b""
        visitor.leave()


async def test_the_end_of_one_direction_is_passed_on_and_the_rest_of_the_other_still_comes() -> None:
    async with opened() as door, server("it") as port:
        door.targets = (port,)
        visitor = await Visitor.enter(door)
        assert await visitor.ask() == "it hi"
        assert await visitor.say_goodbye() == b""
        visitor.leave()


def test_the_end_of_a_direction_whose_other_side_is_gone_is_nothing_new() -> None:
    async def scenario() -> None:
        async with server("it") as port:
            _, gone = await asyncio.open_connection(LOOPBACK, port)
            gone.transport.abort()
            await asyncio.sleep(0)
            ended = asyncio.StreamReader()
            ended.feed_eof()
            try:
                await door_module._pump(ended, gone)
            finally:
                gone.close()

    # The loop that a cluster has; its transports mind what those of the standard one do not.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


async def test_a_taken_port_is_named() -> None:
    async with opened() as door:
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match=str(door.port))):
            async with open_door(door.port):
                raise AssertionError
