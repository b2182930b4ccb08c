"""Leases taken, spread and given back by several workers on a real Redis; their MQTT sessions are left out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.leases import Leases
from fleet.ground.tasks import running
from fleet.roles.worker.ownership import balance
from fleet.roles.worker.ownership import balancer as module
from fleet.roles.worker.ownership.balancer import ShardBalancer
from fleet.roles.worker.ownership.lease import Lease
from fleet.roles.worker.ownership.shard import Shard

COUNT = 16
LIMIT = 240.0
LONG = 1000.0
"""A lease that no test outlives."""


class Session:
    """A connected session without messages."""

    connected = True

    async def run(self, on_ready: Callable[[], None], on_greeted: Callable[[], None]) -> None:
        on_greeted()
        on_ready()
        await asyncio.Event().wait()

    async def drain(self, seconds: float) -> None:
        return


class Wire:
    """What all workers hear of each other's losses, as the broker would tell them."""

    def __init__(self) -> None:
        self.workers: list[ShardBalancer] = []
        self.released: list[int] = []
        self.group: asyncio.TaskGroup | None = None

    def announce(self, shard: int, fence: str) -> None:
        self.released.append(shard)
        self.spread(shard, fence, released=True)

    def spread(self, shard: int, fence: str, *, released: bool) -> None:
        assert self.group
        for worker in self.workers:
            self.group.create_task(worker.take_lost(shard, fence, released))


class Reach:
    """A worker's connection for losses."""

    def __init__(self, wire: Wire) -> None:
        self.reached = asyncio.Event()
        self.reached.set()
        self.connected = True
        self.announce = wire.announce


class Team:
    """Workers that come and go."""

    def __init__(self, store: Store, stack: AsyncExitStack) -> None:
        self.store = store
        self.wire = Wire()
        self._stack = stack

    async def join(self, name: str, seconds: float = LONG) -> ShardBalancer:
        async def receive(shard: Shard, kind: str, mac: str, payload: bytes) -> None:
            return

        def make(number: int, lease: Lease) -> Shard:
            return Shard(
                number,
                lease,
                lambda _: Session(),
                SimpleNamespace(
                    receive=receive, take=lambda mac, payload: None, expect=lambda mac, payload, ended: payload
                ),
                worker.confirm,
            )

        worker = ShardBalancer(Leases(self.store, name, seconds), COUNT, make, Reach(self.wire))
        self.wire.workers.append(worker)
        await self._stack.enter_async_context(running(name, worker.run))
        return worker

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT):
            while not holds():
                await asyncio.sleep(0.01)

    async def until_spread(self, *wanted: int) -> None:
        await self.until(lambda: sorted(len(worker.owned) for worker in self.wire.workers) == sorted(wanted))

    async def until_async(self, holds: Callable[[], Awaitable[object]]) -> None:
        async with asyncio.timeout(LIMIT):
            while not await holds():
                await asyncio.sleep(0.01)


@pytest.fixture
async def team(redis_url: str) -> AsyncIterator[Team]:
    store = await Store.open(redis_url, COUNT)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        one = Team(store, stack)
        one.wire.group = await stack.enter_async_context(asyncio.TaskGroup())
        yield one


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP_SECONDS", 0.05)


async def test_a_newcomer_is_given_its_share_one_shard_in_a_step(
    team: Team, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    step = ShardBalancer._step

    async def counted(worker: ShardBalancer) -> float:
        before = len(team.wire.released)
        pause = await step(worker)
        given.append(len(team.wire.released) - before)
        return pause

    await team.join("a")
    await team.until_spread(16)
    monkeypatch.setattr(ShardBalancer, "_step", counted)
    # Nobody leaves: who is held up is still there.
    monkeypatch.setattr(balance, "FRESH_SECONDS", LONG)
    await team.join("b")
    await team.until_spread(8, 8)
    await team.join("c")
    await team.until_spread(5, 5, 6)
    # Two workers may give at the same time, each one shard.
    assert max(given) <= 2
    assert len(team.wire.released) <= 8 + 5 + 2


@pytest.mark.parametrize("released", [False, True])
async def test_a_shard_whose_new_owner_leaves_is_taken_again_at_once(team: Team, released: bool) -> None:
    first = await team.join("a")
    await team.until_spread(16)
    second = await team.join("b")
    await team.until(lambda: second.owned)
    [(number, shard)] = list(second.owned.items())[:1]
    second._holder.closed = True  # as dead as one can be inside the same process
    if released:
        await second._holder.hand_over(number)
    else:
        team.wire.spread(number, shard.owner.fence, released=False)
    await team.until(lambda: number in first.owned)
    assert int(first.owned[number].owner.fence) > int(shard.owner.fence)


async def test_a_loss_of_long_ago_takes_nothing_from_the_present_owner(team: Team) -> None:
    first = await team.join("a")
    await team.until_spread(16)
    second = await team.join("b")
    await team.until(lambda: len(second.owned) == 8)
    number, shard = next(iter(second.owned.items()))
    team.wire.spread(number, str(int(shard.owner.fence) - 1), released=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(first.take_lost(number, "1", False))
    assert number not in first.owned
    assert await second.confirm(shard)


async def test_a_shard_that_passed_to_another_worker_ends_here(team: Team) -> None:
    # A third of that passes before it looks; the rest is for a busy machine.
    first = await team.join("a", 15.0)
    await team.until_spread(16)
    shard = first.owned[3]
    assert await Leases(team.store, "thief", LONG).take(3, shard.owner.fence) is not None
    await team.until(lambda: 3 not in first.owned)
    assert not shard.held


async def test_who_cannot_renew_its_leases_gives_up_before_they_end(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await team.join("a", 1.0)
    await team.until_spread(16)
    shards = list(first.owned.values())

    async def hang(*_: object) -> bool:
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(Leases, "renew", hang)
    await team.until(lambda: not any(shard.held for shard in shards))
    # The others may take them only now: they still exist in Redis, or have just ended.
    await team.until(lambda: all(first.owned.get(shard.number) is not shard for shard in shards))


async def test_leaving_waits_for_turns_but_not_for_ever(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    first, now = await team.join("a"), [0.0]
    await team.until_spread(16)
    monkeypatch.setattr(first, "_clock", lambda: now[0])
    quick, slow = first.owned[1], first.owned[2]
    done = asyncio.Event()

    async def turn(until: asyncio.Event) -> None:
        await until.wait()

    quick.spawn("turn x", turn(done))
    never = slow.spawn("turn y", turn(asyncio.Event()))
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(first.hand_over(30))
        # Only now: to another worker that is there already, shards move, with their turns or without.
        second = await team.join("b")
        await team.until(lambda: len(second.owned) == 14)
        assert set(first.owned) == {1, 2}
        done.set()
        await team.until(lambda: set(first.owned) == {2})
        assert not never.done()
        now[0] = 30.0
        await leaving
    assert never.cancelled()
    await team.until(lambda: len(second.owned) == 16)


async def test_who_cannot_reach_the_broker_is_given_nothing(team: Team, quick: None) -> None:
    first = await team.join("a")
    await team.until_spread(16)
    second = await team.join("b")
    cast("Any", second._losses).connected = False
    await team.until_async(lambda: _alone(team.store))
    assert len(first.owned) >= 15
    cast("Any", second._losses).connected = True
    await team.until_spread(8, 8)


async def _alone(store: Store) -> bool:
    return await store.client.zcard("workers") == 1
