"""Raw clients to the shared broker, and to one that a test may kill."""

from collections.abc import AsyncIterator

import pytest

from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients


@pytest.fixture
async def clients(broker: MosquittoServer) -> AsyncIterator[Clients]:
    async with Clients(broker) as clients:
        yield clients


@pytest.fixture
async def own_clients(own_broker: MosquittoServer) -> AsyncIterator[Clients]:
    async with Clients(own_broker) as clients:
        yield clients
