import asyncio
import functools
from collections.abc import AsyncIterator

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Ended
from fleet.roles.worker.ownership.device_executor import DeviceExecutor


@pytest.fixture
async def executor() -> AsyncIterator[DeviceExecutor]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        yield DeviceExecutor(group)


async def test_a_devices_work_is_done_in_order(executor: DeviceExecutor) -> None:
    done: list[int] = []
    first = asyncio.Event()

    async def work(number: int) -> None:
        if number == 0:
            await first.wait()
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(executor.run("a", functools.partial(work, number)))
        await asyncio.sleep(0)
        first.set()
    assert done == list(range(10))


async def test_devices_do_not_wait_for_each_other(executor: DeviceExecutor) -> None:
    meeting = asyncio.Barrier(2)

    async def meet() -> None:
        await meeting.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run("a", meet))
        group.create_task(executor.run("b", meet))


async def test_failed_work_does_not_stop_what_follows(executor: DeviceExecutor) -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def succeed() -> None:
        done.set()

    done = asyncio.Event()
    await executor.run("a", fail)
    await executor.run("a", succeed)
    assert done.is_set()


async def test_an_idle_device_costs_nothing(executor: DeviceExecutor) -> None:
    async def nothing() -> None:
        return

    await executor.run("a", nothing)
    assert executor._queues == {}


async def test_work_for_which_nobody_waits_is_done_in_its_turn_and_its_failure_logged(
    executor: DeviceExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def fail() -> None:
        done.append("failed")
        raise Unavailable("away")

    async def succeed() -> None:
        done.append("done")

    executor.submit("a", fail)
    await executor.run("a", succeed)
    assert done == ["failed", "done"]
    assert "work failed" in caplog.text


async def test_work_that_is_cancelled_with_its_queue_is_over_for_whom_it_matters() -> None:
    ended: list[Ended] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    stopped = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await stopped

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        executor = DeviceExecutor(group)
        for one in ended:
            executor.submit("a", wait, one)
        await asyncio.sleep(0)
        stopped.cancel()
    assert [one.cancelled() for one in ended] == [True, True]
    assert executor._queues == {}


async def test_work_that_was_cancelled_before_it_began_is_skipped(executor: DeviceExecutor) -> None:
    gate, done = asyncio.Event(), list[int]()

    async def work(number: int) -> None:
        await gate.wait()
        done.append(number)

    ended: list[Ended] = [asyncio.get_running_loop().create_future() for _ in range(3)]
    for number, one in enumerate(ended):
        executor.submit("a", functools.partial(work, number), one)
    await asyncio.sleep(0)
    for one in ended[:2]:
        one.cancel()
    gate.set()
    assert await ended[2] is None
    assert done == [0, 2]  # the first one had begun
