"""A broker that a test may kill, and a publisher's raw connection."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_raw import RawClient
from tests.support.tcp_relay import TcpRelay


@pytest.fixture
def own_plain_broker(tmp_path: Path) -> Iterator[MosquittoServer]:
    server = MosquittoServer(tmp_path)
    server.start()
    yield server
    server.discard()


@pytest.fixture
async def relay(plain_broker: MosquittoServer) -> AsyncIterator[TcpRelay]:
    async with TcpRelay(plain_broker.port) as relay:
        yield relay


@pytest.fixture
async def device(plain_broker: MosquittoServer) -> AsyncIterator[RawClient]:
    """A raw client of the shared broker, connected."""
    client = await RawClient.open(plain_broker.port)
    await client.connect("")
    yield client
    await client.discard()
