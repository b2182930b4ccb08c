"""The client itself, over real servers: answers outside of batches, and connections that end."""

import asyncio

import pytest
import redis

from fleet.adapters.redis.client import client as module
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from tests.support.redis_store import SHARDS

LIMIT = 240


def connections(url: str) -> int:
    """Return how many connections the server has, without the one that asks."""
    with redis.Redis.from_url(url) as client:
        return len(client.client_list()) - 1


async def none_left(url: str) -> None:
    async with asyncio.timeout(LIMIT):
        while connections(url):
            await asyncio.sleep(0.02)


async def test_an_answer_means_the_same_alone_and_in_a_batch(store: Store) -> None:
    await store.client.zadd("{k}", {"a": 1.5, "b": 2})
    pipe = store.client.pipeline(transaction=False)
    pipe.zrange("{k}", 0, -1, withscores=True)
    pipe.zrange("{k}", 0, -1)
    [scored, plain] = await pipe.execute()
    assert scored == [("a", 1.5), ("b", 2.0)] and plain == ["a", "b"]
    assert await store.client.zrange("{k}", 0, -1, withscores=True) == scored
    assert await store.client.zrange("{k}", 0, -1) == plain


def test_each_command_that_shares_a_connection_is_one_of_redis_and_blocks_nobody(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        known = client.execute_command("COMMAND INFO", *module._QUICK)
    assert {about[0].upper() for about in known if about} == module._QUICK
    assert [about[0] for about in known if "blocking" in about[2]] == []


async def test_a_read_that_waits_uses_the_connection_of_the_one_before(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS)
    with redis.Redis.from_url(redis_url) as watcher:

        async def connections_after_a_read() -> int:
            await store.client.read_streams({"{s}": "0-0"}, 1, 0.001)
            return int(watcher.info("stats")["total_connections_received"])

        first = await connections_after_a_read()
        assert [await connections_after_a_read() for _ in range(5)] == [first] * 5
    await store.close()


async def test_a_closed_store_has_no_connection(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS)
    await store.ping()
    await store.client.info()
    assert connections(redis_url) >= 2
    await store.close()
    await none_left(redis_url)


async def test_a_store_closes_though_a_connection_does_not_in_time(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(redis_url, SHARDS)
    await store.client.info()
    idle = store.client.connection_pool._available_connections
    assert idle
    for connection in idle:
        connection.socket_connect_timeout = 0.01
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.StreamWriter, "wait_closed", lambda _: asyncio.Event().wait())
        await store.close()
    await none_left(redis_url)


async def test_a_store_that_does_not_open_leaves_no_connection(redis_url: str) -> None:
    with pytest.raises(ConfigError, match="names no Cluster"):
        await Store.open(redis_url.replace("redis://", "redis+cluster://").removesuffix("/0"), SHARDS)
    await none_left(redis_url)
