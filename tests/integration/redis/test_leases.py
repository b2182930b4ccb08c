import asyncio

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases


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


async def test_the_lease_of_an_owner_without_connection_is_taken_away_once(store: Store) -> None:
    first, second, third = (Leases(store, name, 60) for name in ("w1", "w2", "w3"))
    lost = await first.take(3)
    assert lost is not None
    assert await second.take(3, "not the fence of its owner") is None
    new = await second.take(3, lost.fence)
    assert new is not None and int(new.fence) > int(lost.fence)
    assert await third.take(3, lost.fence) is None
    assert not await first.renew(3, lost)
    assert await second.renew(3, new)


async def test_a_lease_that_ended_cannot_be_renewed(store: Store) -> None:
    leases = Leases(store, "w1", 60)
    owner = await leases.take(3)
    assert owner is not None
    assert await leases.renew(3, owner)
    await store.client.delete(store.keys.own(3))
    assert not await leases.renew(3, owner)
    assert await leases.free(range(4)) == [0, 1, 2, 3]
    assert await leases.take(3) != owner
    assert await leases.free(range(4)) == [0, 1, 2]


async def test_a_lease_ends_by_itself_and_every_renewal_lengthens_it(store: Store) -> None:
    async def left() -> int:
        return int(await store.client.ttl(store.keys.own(3)))

    owner = await Leases(store, "w1", 60).take(3)
    assert owner is not None
    assert 0 < await left() <= 60
    assert await Leases(store, "w1", 120).take(3) == owner
    assert 60 < await left() <= 120
    assert await Leases(store, "w1", 240).renew(3, owner)
    assert 120 < await left() <= 240


async def test_workers_know_each_other_and_what_each_owns(store: Store) -> None:
    first, second = Leases(store, "w1", 60), Leases(store, "w2", 60)
    assert [peer.worker for peer in await first.announce(7)] == ["w1"]
    assert {peer.worker: peer.shards for peer in await second.announce(2)} == {"w1": 7, "w2": 2}
    await first.retire()
    assert [peer.worker for peer in await second.announce(9)] == ["w2"]


async def test_a_worker_that_says_nothing_is_forgotten(store: Store) -> None:
    await Leases(store, "w1", 60).announce()
    async with asyncio.timeout(240):
        while len(await Leases(store, "w2", 1).announce()) > 1:
            await asyncio.sleep(0.05)


async def test_a_redis_that_lost_everything_is_given_the_functions_again(store: Store) -> None:
    await store.client.flushall()
    await store.client.function_flush()
    assert await Leases(store, "w1", 60).take(3) is not None
