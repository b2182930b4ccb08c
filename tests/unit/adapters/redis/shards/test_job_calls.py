"""What control sees of Redis; tests/integration/redis/test_job_calls.py has the rest, over real servers too."""

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.job_calls import JobCalls
from tests.support.memory_store import connection_of, memory_store


async def test_the_life_of_redis_is_the_same_until_it_may_have_lost_something(store: Store) -> None:
    first = await JobCalls(store, 1).life()
    assert await JobCalls(store, 2).life() == first and len(first) == 64
    connection_of(store).redis.run("FLUSHALL")
    second = await JobCalls(store, 1).life()
    assert second != first, "the mark is another one"
    other = await memory_store(shards=1)
    mark = connection_of(store).redis.run("GET", names.CONTROL_LIFE)
    connection_of(other).redis.run("SET", names.CONTROL_LIFE, mark)
    assert await JobCalls(other, 1).life() != second, "it is another process, which may have read an old file"


async def test_the_key_of_a_device_is_that_of_its_present_connection(store: Store) -> None:
    macs = [f"02:00:00:00:00:0{number}" for number in range(1, 5)]
    user = "device.k2.first.1"
    for mac, record in zip(macs, ((user, "5", "5"), (user, "4", "5"), ("other", "5", "5")), strict=False):
        pairs = zip(("cu", "cep", "ep"), record, strict=True)
        connection_of(store).redis.run("HSET", store.keys.device(mac), *(one for pair in pairs for one in pair))
    assert await JobCalls(store, 1).keys(macs) == {macs[0]: "k2"}
    assert await JobCalls(store, 1).keys([]) == {}
