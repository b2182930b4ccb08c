from collections.abc import AsyncIterator

import pytest

from fleet.store.connect import Store
from fleet.store.leases import Leases
from fleet.store.owner import Owner
from fleet.wire.topics import shard_of

MAC = "aa:bb:cc:dd:ee:ff"
SHARDS = 16


@pytest.fixture
def mac() -> str:
    return MAC


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    store = await Store.open(redis_url, SHARDS)
    yield store
    await store.close()


@pytest.fixture
async def owner(store: Store) -> Owner:
    """The lease of the device's shard."""
    owner = await Leases(store, "worker-1", 60).take(shard_of(MAC, SHARDS))
    assert owner is not None
    return owner
