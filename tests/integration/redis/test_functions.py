"""Functions of several versions in one Redis: each process calls its own."""

import redis

from fleet.adapters.redis.client.functions import functions, marked
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases

SHARDS = 16
OLD = "#!lua name=fleet\nredis.register_function('fleet_lease', function() return {'0', 'the old one'} end)\n"


async def test_another_version_that_starts_changes_nothing_for_those_that_run(redis_url: str) -> None:
    store = await Store.open(redis_url, SHARDS)
    try:
        with redis.Redis.from_url(redis_url) as client:
            client.function_load(OLD)
            client.function_load(marked(OLD).code)
            assert await Leases(store, "w", 60).take(1) is not None
            assert len(client.function_list()) == 3
    finally:
        await store.close()


async def test_who_starts_deletes_what_others_left_and_they_load_theirs_again(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.function_load(OLD)
        running = await Store.open(redis_url, SHARDS)
        try:
            assert names(client) == [functions().library]
            other = marked(OLD)
            client.function_flush()
            client.function_load(other.code)
            assert await Leases(running, "w", 60).take(2) is not None
            assert names(client) == sorted([functions().library, other.library])
        finally:
            await running.close()


async def test_the_library_of_something_else_is_left_alone(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.function_load("#!lua name=fleetwood\nredis.register_function('rumours', function() return 1977 end)\n")
        store = await Store.open(redis_url, SHARDS)
        await store.close()
        assert client.fcall("rumours", 0) == 1977


def names(client: redis.Redis) -> list[str]:
    return sorted(
        dict(zip(one[::2], one[1::2], strict=True))[b"library_name"].decode() for one in client.function_list()
    )
