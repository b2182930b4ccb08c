"""The port that stays, with small servers behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from fleet.ground.errors import ConfigError
from fleet.workbench.cluster import tcp_proxy
from fleet.workbench.cluster.tcp_proxy import TcpProxy, run_tcp_proxy
from fleet.workbench.local_servers.ports import LOOPBACK, choose

LIMIT = 240


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
async def opened() -> AsyncIterator[TcpProxy]:
    async with asyncio.timeout(LIMIT), run_tcp_proxy(choose()) as proxy:
        yield proxy


class ProxyClient:
    """A connection through a proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, proxy: TcpProxy) -> "ProxyClient":
        return cls(*await asyncio.open_connection(LOOPBACK, proxy.port))

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
    async with opened() as proxy, server("old") as old, server("new") as new:
        proxy.backends = (old,)
        first = await ProxyClient.connect(proxy)
        assert await first.ask() == "old hi"
        proxy.backends = (new,)
        second = await ProxyClient.connect(proxy)
        assert await second.ask() == "new hi"
        assert await first.ask("again") == "old again"
        for client in (first, second):
            client.leave()


async def test_connections_are_spread_over_all_processes() -> None:
    async with opened() as proxy, server("one") as one, server("two") as two:
        proxy.backends = (one, two)
        clients = [await ProxyClient.connect(proxy) for _ in range(4)]
        assert sorted([await client.ask() for client in clients]) == ["one hi", "one hi", "two hi", "two hi"]
        for client in clients:
            client.leave()


async def test_a_process_that_does_not_listen_yet_is_passed_over() -> None:
    async with opened() as proxy, server("up") as up:
        proxy.backends = (choose(), up)
        clients = [await ProxyClient.connect(proxy) for _ in range(2)]
        assert [await client.ask() for client in clients] == ["up hi", "up hi"]
        for client in clients:
            client.leave()


async def test_without_a_process_a_visitor_is_sent_away() -> None:
    async with opened() as proxy:
        client = await ProxyClient.connect(proxy)
        assert await client.say_goodbye() == b""
        client.leave()


async def test_the_end_of_one_direction_is_passed_on_and_the_rest_of_the_other_still_comes() -> None:
    async with opened() as proxy, server("it") as port:
        proxy.backends = (port,)
        client = await ProxyClient.connect(proxy)
        assert await client.ask() == "it hi"
        assert await client.say_goodbye() == b""
        client.leave()


def test_the_end_of_a_direction_whose_other_side_is_gone_is_nothing_new() -> None:
    async def scenario() -> None:
        async with server("it") as port:
            _, gone = await asyncio.open_connection(LOOPBACK, port)
            gone.transport.abort()
            await asyncio.sleep(0)
            ended = asyncio.StreamReader()
            ended.feed_eof()
            try:
                await tcp_proxy._copy(ended, gone)
            finally:
                gone.close()

    # The loop that a cluster has; its transports mind what those of the standard one do not.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


async def test_a_taken_port_is_named() -> None:
    async with opened() as proxy:
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match=str(proxy.port))):
            async with run_tcp_proxy(proxy.port):
                raise AssertionError
