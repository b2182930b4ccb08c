from collections.abc import AsyncIterator

import pytest

from fleet.adapters.redis.client.store import Store
from tests.support.redis_store import opened


@pytest.fixture
async def store(redis_url: str, patient: None) -> AsyncIterator[Store]:
    async with opened(redis_url) as store:
        yield store
