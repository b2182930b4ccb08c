"""What time does to leases; tests/integration/redis/test_leases.py has the rest, over real servers too."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from tests.support.virtual_time import elapse


async def test_a_lease_lasts_its_time_and_then_belongs_to_nobody(store: Store) -> None:
    first, second = Leases(store, "a", 10), Leases(store, "b", 10)
    owner = await first.take(3)
    assert owner
    await elapse(9.9)
    assert await second.take(3) is None and await first.free([3]) == []
    await elapse(0.2)
    assert await first.free([3]) == [3] and not await first.renew(3, owner)
    newer = await second.take(3)
    assert newer and int(newer.fence) > int(owner.fence)


async def test_a_renewal_begins_the_time_again(store: Store) -> None:
    first = Leases(store, "a", 10)
    owner = await first.take(3)
    assert owner
    for _ in range(5):
        await elapse(9)
        assert await first.renew(3, owner)


async def test_a_worker_is_known_for_as_long_as_its_leases_last(store: Store) -> None:
    first, second = Leases(store, "a", 10), Leases(store, "b", 10)
    await first.announce(7)
    await elapse(4)
    [one, other] = await second.announce(1)
    assert (one.worker, one.shards, round(one.age)) == ("a", 7, 4) and other.age == 0
    await elapse(7)
    assert [peer.worker for peer in await second.announce(1)] == ["b"]
