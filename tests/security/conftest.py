"""What attacks share."""

from collections.abc import AsyncIterator

import pytest

from fleet.adapters.redis.client.store import Store
from tests.support.front_client import FrontClient
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.patience import API_STORE, lengthen
from tests.support.redis_store import opened


@pytest.fixture
async def store(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    """A Redis for an api that waits for it as long as a test; `redis_url` lets the store do so."""
    lengthen(monkeypatch, API_STORE)
    async with opened(redis_url) as store:
        yield store


@pytest.fixture
async def own_clients(own_broker: MosquittoServer) -> AsyncIterator[Clients]:
    async with Clients(own_broker) as clients:
        yield clients


@pytest.fixture(autouse=True)
async def _no_connection_left() -> AsyncIterator[None]:
    yield
    await FrontClient.discard_all()
