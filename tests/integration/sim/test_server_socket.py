import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from fleet.workbench.sim.connection.server_socket import ServerSocket
from fleet.workbench.sim.records.journal import Journal

LOOPBACK = "127.0.0.1"
LIMIT = 240


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind((LOOPBACK, 0))
        bound.settimeout(LIMIT)
        yield bound


async def connect(server: socket.socket, *, connected: bool = True) -> ServerSocket:
    journal = Journal(asyncio.get_running_loop().time)
    opened = await ServerSocket.connect(LOOPBACK, server.getsockname()[1], journal, connected=connected)
    assert opened is not None
    return opened


@pytest.fixture
async def device(server: socket.socket) -> AsyncIterator[ServerSocket]:
    opened = await connect(server)
    yield opened
    opened.close()


async def read_until(device: ServerSocket, last: bytes) -> list[bytes]:
    """Return what the socket passes on, up to this datagram."""
    got: list[bytes] = []
    done = asyncio.Event()

    def take(datagram: bytes) -> None:
        got.append(datagram)
        if datagram == last:
            done.set()

    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        reading = group.create_task(device.read(take))
        await done.wait()
        reading.cancel()
    return got


async def test_a_connected_socket_gets_datagrams_of_the_server_only(
    device: ServerSocket, server: socket.socket
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"foreign", (LOOPBACK, device.local_port))
    server.sendto(b"own", (LOOPBACK, device.local_port))
    assert await read_until(device, b"own") == [b"own"]


async def test_an_unconnected_one_gets_those_of_anybody(server: socket.socket) -> None:
    device = await connect(server, connected=False)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"foreign", (LOOPBACK, device.local_port))
        assert await read_until(device, b"foreign") == [b"foreign"]
    device.close()


async def test_after_rebinding_it_sends_from_another_port(device: ServerSocket, server: socket.socket) -> None:
    old = device.local_port
    device.rebind()
    assert device.send(b"x")
    assert server.recvfrom(10)[1][1] == device.local_port != old
    server.sendto(b"back", (LOOPBACK, device.local_port))
    assert await read_until(device, b"back") == [b"back"]


async def test_an_empty_datagram_closes_it(device: ServerSocket, server: socket.socket) -> None:
    server.sendto(b"", (LOOPBACK, device.local_port))
    async with asyncio.timeout(LIMIT):
        await device.read(lambda _: None)
    assert not device.is_open
    assert not device.send(b"x")


async def test_closed_it_ends_its_reader(device: ServerSocket) -> None:
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        group.create_task(device.read(lambda _: None))
        await asyncio.sleep(0)
        device.close()


async def test_an_unknown_host_is_noted() -> None:
    journal = Journal(asyncio.get_running_loop().time)
    assert await ServerSocket.connect("no-such-host.invalid", 9, journal) is None
    assert len(journal.find("udp failed")) == 1
