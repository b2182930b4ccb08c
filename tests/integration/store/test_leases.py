from fleet.store.connect import Store
from fleet.store.leases import Leases


async def test_a_shard_has_one_owner(store: Store) -> None:
    first, second = Leases(store, "w1", 60), Leases(store, "w2", 60)
    owner = await first.take(3)
    assert owner is not None
    assert await first.take(3) == owner
    assert await second.take(3) is None


async def test_every_new_owner_has_a_higher_fence(store: Store) -> None:
    first, second = Leases(store, "w1", 60), Leases(store, "w2", 60)
    before = await first.take(3)
    await second.release(3)
    assert await second.take(3) is None
    await first.release(3)
    after = await second.take(3)
    assert before is not None and after is not None
    assert int(after.fence) > int(before.fence)


async def test_the_fence_rises_even_when_its_counter_was_lost(store: Store) -> None:
    leases = Leases(store, "w1", 60)
    before = await leases.take(3)
    await leases.release(3)
    await store.client.delete(store.keys.fence(3))
    after = await leases.take(3)
    assert before is not None and after is not None
    assert int(after.fence) >= int(before.fence)


async def test_workers_know_how_many_they_are(store: Store) -> None:
    first, second = Leases(store, "w1", 60), Leases(store, "w2", 60)
    assert await first.announce() == 1
    assert await second.announce() == 2
    await first.retire()
    assert await second.announce() == 1


async def test_a_redis_that_lost_everything_is_given_the_functions_again(store: Store) -> None:
    await store.client.flushall()
    await store.client.function_flush()
    assert await Leases(store, "w1", 60).take(3) is not None
