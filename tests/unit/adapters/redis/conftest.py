import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from tests.support.memory_store import memory_store


@pytest.fixture
async def store() -> Store:
    """A store on the Redis in memory, in whose time nothing waits."""
    return await memory_store(shards=1)


@pytest.fixture
async def owner(store: Store) -> Owner:
    owner = await Leases(store, "w", 1e6).take(0)
    assert owner is not None
    return owner
