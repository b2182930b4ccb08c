"""A store that is closed whatever happens to the test that opened it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.redis.client.store import Store

SHARDS = 16


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await Store.open(url, SHARDS)
    try:
        yield store
    finally:
        await store.close()
