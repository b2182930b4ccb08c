"""What Redis, Valkey and a Cluster say of themselves."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
import redis

from fleet.adapters.redis.client.examination import examine_servers, read_shard_owners
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from tests.support.redis_store import SHARDS


@pytest.fixture
def store(server_store: Store) -> Store:
    """What is tested here is below the commands, so the Redis in memory does not have it."""
    return server_store


def now() -> datetime:
    return datetime.now(UTC)


async def test_every_primary_is_asked(store: Store, redis_engines: str) -> None:
    servers = await examine_servers(store, now)
    assert len(servers) == (3 if "cluster" in redis_engines else 1)
    for server in servers:
        assert server.role == "master" and server.policy == "noeviction" and not server.appends
        assert server.snapshots is False and not server.failing
        assert server.functions == "current"
        assert abs(server.ahead) < 30 and 0 < server.answer < 30
        assert int(server.version.split(".")[0]) >= (8 if server.product == "Valkey" else 7)


async def test_a_clock_that_differs_is_seen(store: Store) -> None:
    (first, *_) = await examine_servers(store, lambda: now() - timedelta(seconds=100))
    assert 90 < first.ahead < 110


async def test_the_clocks_of_one_machine_agree_within_the_wait_for_an_answer(store: Store) -> None:
    for server in await examine_servers(store, now):
        assert abs(server.ahead) <= server.within + 0.001


async def test_a_slow_answer_is_taken_for_one_of_the_middle_of_its_wait(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS)
    begun = now()
    times = itertools.cycle([begun - timedelta(seconds=10), begun + timedelta(seconds=10)])
    try:
        [server] = await examine_servers(store, lambda: next(times))
    finally:
        await store.close()
    assert abs(server.ahead) < 9 and server.within == 10


async def test_of_several_looks_at_a_clock_the_fastest_counts(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS)
    begun = now()
    slow = [begun - timedelta(seconds=2_000), begun]
    try:
        [server] = await examine_servers(store, lambda: slow.pop(0) if slow else now())
    finally:
        await store.close()
    assert abs(server.ahead) < 900 and server.within < 900


async def test_looking_loads_nothing(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS, load=False)
    try:
        assert [one.functions for one in await examine_servers(store, now)] == ["none"]
    finally:
        await store.close()
    with redis.Redis.from_url(redis_url) as client:
        assert client.function_list() == []


async def test_who_owns_what_is_counted(store: Store, owner: Owner) -> None:
    force = await read_shard_owners(store)
    assert set(force.owners.values()) == {owner.worker}
    await Leases(store, owner.worker, 240).announce(1)
    assert (await read_shard_owners(store)).workers == 1
