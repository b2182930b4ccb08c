"""Several workers on one Redis in memory, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.shards.leases import Leases
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.balancer import ShardBalancer
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.shard import Shard
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import connection_of, memory_store
from tests.support.shard_session import SilentSession
from tests.support.virtual_time import elapse

COUNT, SECONDS = 8, 6.0


class Team:
    """Workers that learn of each other's losses at once."""

    def __init__(self, stack: AsyncExitStack, group: asyncio.TaskGroup) -> None:
        self.redis, self._stack, self._group = MemoryRedis(), stack, group
        self.workers: list[ShardBalancer] = []
        self.stores: list[Any] = []

    def announce(self, shard: int, fence: str) -> None:
        self.spread(shard, fence, released=True)

    def spread(self, shard: int, fence: str, *, released: bool) -> None:
        for worker in self.workers:
            self._group.create_task(worker.take_lost(shard, fence, released))

    async def join(self, name: str) -> ShardBalancer:
        async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
            return

        def make(number: int, lease: Lease) -> Shard:
            receiver = SimpleNamespace(
                receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload
            )
            return Shard(number, lease, lambda _: SilentSession(), receiver, worker.confirm)

        store = await memory_store(self.redis)
        reports = SimpleNamespace(reached=asyncio.Event(), connected=True, announce=self.announce)
        reports.reached.set()
        clock = asyncio.get_running_loop().time
        worker = ShardBalancer(Leases(store, name, SECONDS), COUNT, make, reports, clock)
        self.workers.append(worker)
        self.stores.append(store)
        await self._stack.enter_async_context(running(name, worker.run))
        return worker

    def shares(self) -> list[int]:
        return [len(worker.owned) for worker in self.workers]


@pytest.fixture
async def team() -> AsyncIterator[Team]:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        one = Team(stack, group)
        async with stack:
            yield one


async def test_every_shard_has_one_owner_and_all_own_a_fair_share(team: Team) -> None:
    await team.join("a")
    await elapse(5)
    assert team.shares() == [COUNT]
    await team.join("b")
    await elapse(20)
    assert team.shares() == [4, 4]
    await team.join("c")
    await elapse(20)
    assert sorted(team.shares()) == [2, 3, 3]
    assert sorted(number for worker in team.workers for number in worker.owned) == list(range(COUNT))


async def test_the_shards_of_a_worker_without_redis_pass_to_another_when_their_leases_end(team: Team) -> None:
    first = await team.join("a")
    await elapse(5)
    second = await team.join("b")
    await elapse(20)
    connection_of(team.stores[0]).fault = RedisConnectionError("away")
    begun = asyncio.get_running_loop().time()
    held = list(first.owned.values())
    while len(second.owned) < COUNT:
        await elapse(0.1)
        assert not any(shard.held for shard in held if shard.number in second.owned), "two owners"
    assert asyncio.get_running_loop().time() - begun < 3 * SECONDS
    connection_of(team.stores[0]).fault = None


async def test_a_lost_shard_is_taken_at_once_and_not_under_an_old_fence(team: Team) -> None:
    first = await team.join("a")
    await elapse(5)
    second = await team.join("b")
    await elapse(20)
    number, shard = next(iter(first.owned.items()))
    await second.take_lost(number, "0", False)
    assert number not in second.owned
    await second.take_lost(number, shard.owner.fence, False)
    assert number in second.owned
    await elapse(SECONDS / 3 + 1)
    assert number not in first.owned and not shard.held


async def test_a_worker_that_cannot_reach_the_broker_gets_nothing(team: Team) -> None:
    first = await team.join("a")
    await elapse(5)
    second = await team.join("b")
    second._losses.connected = False  # type: ignore[misc]
    await elapse(20)
    assert len(first.owned) == COUNT and second.owned == {}


async def test_a_worker_that_leaves_waits_for_its_turns_for_a_while(team: Team) -> None:
    first = await team.join("a")
    await elapse(5)
    second = await team.join("b")
    await elapse(20)
    number, shard = next(iter(first.owned.items()))
    never = shard.spawn("turn x", elapse(1e6))
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(first.hand_over(10))
        await elapse(5)
        assert set(first.owned) == {number} and not never.done()
        await leaving
    assert never.cancelled()
    await elapse(1)
    assert len(second.owned) == COUNT
