import asyncio
from collections.abc import AsyncIterator

import pytest

from fleet.ground.tasks import isolate
from fleet.roles.worker.ownership.device_executor import DeviceExecutor


@pytest.fixture
async def lanes() -> AsyncIterator[DeviceExecutor]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        yield DeviceExecutor(lambda what, work: group.create_task(isolate(what, work), name=what))


async def test_a_devices_work_is_done_in_order(lanes: DeviceExecutor) -> None:
    done: list[int] = []
    first = asyncio.Event()

    async def work(number: int) -> None:
        if number == 0:
            await first.wait()
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(lanes.run("a", lambda number=number: work(number)))
        await asyncio.sleep(0)
        first.set()
    assert done == list(range(10))


async def test_devices_do_not_wait_for_each_other(lanes: DeviceExecutor) -> None:
    meeting = asyncio.Barrier(2)

    async def meet() -> None:
        await meeting.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(lanes.run("a", meet))
        group.create_task(lanes.run("b", meet))


async def test_failed_work_does_not_stop_the_lane(lanes: DeviceExecutor) -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def succeed() -> None:
        done.set()

    done = asyncio.Event()
    await lanes.run("a", fail)
    await lanes.run("a", succeed)
    assert done.is_set()


async def test_an_idle_device_costs_nothing(lanes: DeviceExecutor) -> None:
    async def nothing() -> None:
        return

    await lanes.run("a", nothing)
    assert lanes._lanes == {}
