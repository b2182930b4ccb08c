"""The leases of one worker, in virtual time: the Redis in memory says when a lease ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.shards.leases import Leases
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.lease_holder import LeaseHolder
from fleet.roles.worker.ownership.shard import Shard
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import MemoryConnection, connection_of, memory_store
from tests.support.shard_session import SilentSession
from tests.support.virtual_time import elapse

SECONDS = 10.0
FASTER = 1.04
"""Rate of Redis's clock against the worker's: worse than any real pair of clocks."""


class OneHolder:
    """A lease holder, and the Redis behind it."""

    def __init__(self, redis: MemoryRedis, leases: Leases, connection: MemoryConnection) -> None:
        self.redis, self.leases, self.connection = redis, leases, connection
        self.announced: list[int] = []
        self.clock = asyncio.get_running_loop().time
        self.holder = LeaseHolder(leases, self._make, lambda number, fence: self.announced.append(number), self.clock)

    def _make(self, number: int, lease: Lease) -> Shard:
        async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
            return

        receiver = SimpleNamespace(
            receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload
        )
        return Shard(number, lease, lambda _: SilentSession(), receiver, self.holder.confirm)

    async def take(self, number: int) -> Shard:
        await self.holder.take(number)
        return self.holder.owned[number]

    async def never_outlives(self, shard: Shard, until: Callable[[], bool]) -> None:
        """Compare the holder's belief with the lease until a condition holds."""
        key = self.leases._store.keys.own(shard.number)
        async with asyncio.timeout(10 * SECONDS):
            while not until():
                assert not shard.held or self.redis.lasts(key) > shard.lease.left, "believes too long"
                await elapse(0.05)


@pytest.fixture
async def one() -> AsyncIterator[OneHolder]:
    redis = MemoryRedis(FASTER)
    store = await memory_store(redis)
    stage = OneHolder(redis, Leases(store, "a", SECONDS), connection_of(store))
    async with running("leases", stage.holder.run):
        await asyncio.sleep(0)
        yield stage


@pytest.mark.parametrize("there", [0.0, 1.0])
async def test_no_worker_believes_longer_in_its_lease_than_the_lease_lasts(one: OneHolder, there: float) -> None:
    one.connection.there, one.connection.back = there, 1.0
    shard = await one.take(3)
    end = one.clock() + 3 * SECONDS
    await one.never_outlives(shard, lambda: one.clock() > end)
    assert shard.held, "it was renewed"
    one.connection.fault = RedisConnectionError("away")
    await one.never_outlives(shard, lambda: not shard.held)
    assert one.redis.lasts(one.leases._store.keys.own(3)) > 0


async def test_a_shard_whose_lease_cannot_be_renewed_ends_and_is_taken_again(one: OneHolder) -> None:
    shard = await one.take(3)
    one.connection.fault = RedisConnectionError("away")
    await elapse(2 * SECONDS)
    assert one.holder.owned == {} and not shard.held
    one.connection.fault = None
    assert int((await one.take(3)).owner.fence) > int(shard.owner.fence)


async def test_a_shard_that_another_worker_took_ends_at_the_next_renewal(one: OneHolder) -> None:
    shard = await one.take(3)
    thief = Leases(one.leases._store, "b", SECONDS)
    assert await thief.take(3, shard.owner.fence)
    await elapse(SECONDS / 2)
    assert one.holder.owned == {} and not shard.held
    await one.holder.take(3)
    assert one.holder.owned == {}, "the lease of another is not taken"


async def test_what_is_handed_over_is_free_and_announced_and_not_taken_back_at_once(one: OneHolder) -> None:
    shard = await one.take(3)
    await one.holder.hand_over(3)
    assert (one.holder.owned, one.announced, shard.held) == ({}, [3], False)
    assert await one.leases.free([3]) == [3]
    assert one.holder.backs_off(3) and one.holder.backs_off(3, shard.owner.fence)
    assert not one.holder.backs_off(3, "another fence")
    await elapse(3)
    assert not one.holder.backs_off(3)


async def test_what_could_not_be_released_is_not_announced(one: OneHolder) -> None:
    await one.take(3)
    one.connection.fault = RedisConnectionError("away")
    await one.holder.hand_over(3)
    assert (one.holder.owned, one.announced) == ({}, [])


async def test_two_requests_for_one_shard_take_it_once(one: OneHolder) -> None:
    one.connection.there = 1.0
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(one.holder.take(3))
        await asyncio.sleep(0)
        assert one.holder.count == 1
    assert one.holder.count == 1


async def test_a_shard_whose_work_has_ended_is_dropped(one: OneHolder) -> None:
    shard = await one.take(3)
    await asyncio.sleep(0)
    one.holder._owned[3].task.cancel()
    await elapse(0.1)
    await one.holder.drop_ended()
    assert one.holder.owned == {} and not shard.held


async def test_the_end_of_the_worker_releases_everything() -> None:
    store = await memory_store()
    stage = OneHolder(MemoryRedis(), Leases(store, "a", SECONDS), connection_of(store))
    async with running("leases", stage.holder.run):
        await asyncio.sleep(0)
        shards = [await stage.take(number) for number in range(3)]
    assert await stage.leases.free(range(3)) == [0, 1, 2]
    await asyncio.sleep(0)
    assert all(shard._session is None for shard in shards)


async def test_a_closed_holder_takes_nothing(one: OneHolder) -> None:
    one.holder.closed = True
    await one.holder.take(3)
    assert one.holder.owned == {}


async def test_confirming_waits_for_redis_only_as_long_as_the_lease_lasts(one: OneHolder) -> None:
    shard = await one.take(3)
    assert await one.holder.confirm(shard)
    one.connection.there = 1e6
    begun = one.clock()
    assert not await one.holder.confirm(shard)
    assert one.clock() - begun <= SECONDS


async def test_two_tasks_drop_what_ended(one: OneHolder) -> None:
    for number in (3, 4):
        await one.take(number)
    tasks = [held.task for held in one.holder._owned.values()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await asyncio.gather(one.holder.drop_ended(), one.holder.drop_ended())
    assert not one.holder.owned
