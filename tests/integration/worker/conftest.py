from collections.abc import AsyncIterator

import pytest

from fleet.wire.identity import Keys
from tests.integration.worker.scene import Scene, scene
from tests.support.mosquitto_server import MosquittoServer


@pytest.fixture
async def stage(redis_url: str, broker: MosquittoServer, keys: Keys) -> AsyncIterator[Scene]:
    """A worker with one device and one edge."""
    async with scene(redis_url, broker, keys) as one:
        yield one
