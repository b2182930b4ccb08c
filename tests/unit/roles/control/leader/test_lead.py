"""The work in the background, in virtual time: one process does it, and another one goes on."""

import asyncio
from contextlib import AsyncExitStack

from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.control_lease import ControlLease
from fleet.ground.tasks import running
from fleet.roles.control.leader.lead import LEASE_SECONDS, BackgroundPart, Leader
from tests.support.memory_redis import MemoryRedis
from tests.support.memory_store import connection_of, memory_store
from tests.support.virtual_time import elapse


class Process:
    """A process of control, and the fences under which its part runs."""

    def __init__(self, store: Store, name: str) -> None:
        self.working: list[str] = []
        part = BackgroundPart("part", self._work)
        self.leader = Leader(ControlLease(store, name, LEASE_SECONDS), [part])

    async def _work(self, fence: str) -> None:
        self.working.append(fence)
        try:
            await asyncio.Event().wait()
        finally:
            self.working.remove(fence)


async def test_one_process_works_and_another_goes_on_under_a_higher_fence() -> None:
    redis = MemoryRedis()
    first, second = Process(await memory_store(redis), "a"), Process(await memory_store(redis), "b")
    leading = AsyncExitStack()
    await leading.enter_async_context(running("first", first.leader.run))
    await elapse(1)
    async with running("second", second.leader.run):
        await elapse(3 * LEASE_SECONDS)
        (fence,) = first.working
        assert second.working == []
        await leading.aclose()
        assert first.working == []
        await elapse(LEASE_SECONDS / 2)
        (later,) = second.working
        assert int(later) > int(fence)
    assert second.working == []


async def test_who_cannot_renew_stops_before_another_may_begin() -> None:
    redis = MemoryRedis()
    store = await memory_store(redis)
    first, second = Process(store, "a"), Process(await memory_store(redis), "b")
    async with running("first", first.leader.run):
        await elapse(1)
        (fence,) = first.working
        connection_of(store).fault = RedisConnectionError("away")
        async with running("second", second.leader.run):
            for _ in range(int(2 * LEASE_SECONDS / 0.1)):
                await elapse(0.1)
                assert not (first.working and second.working), "two work at once"
            (later,) = second.working
            assert int(later) > int(fence)
