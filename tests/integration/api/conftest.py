from collections.abc import AsyncIterator

import pytest

from fleet.adapters.redis.client.store import Store
from tests.support.patience import API, lengthen
from tests.support.redis_store import opened


@pytest.fixture
async def store(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    """A Redis for an api that waits for it, and for its clients, as long as a test."""
    lengthen(monkeypatch, API)
    async with opened(redis_url) as store:
        yield store
