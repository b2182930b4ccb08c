import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import isolate
from fleet.roles.worker.ownership.device_executor import DeviceExecutor


class Work:
    """Does what the test says."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work

    async def run(self) -> None:
        await self._work()


@pytest.fixture
async def executor() -> AsyncIterator[DeviceExecutor]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        yield DeviceExecutor(lambda what, work: group.create_task(isolate(what, work), name=what))


async def test_a_devices_work_is_done_in_order(executor: DeviceExecutor) -> None:
    done: list[int] = []
    first = asyncio.Event()

    async def work(number: int) -> None:
        if number == 0:
            await first.wait()
        done.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(executor.run("a", Work(lambda number=number: work(number))))
        await asyncio.sleep(0)
        first.set()
    assert done == list(range(10))


async def test_devices_do_not_wait_for_each_other(executor: DeviceExecutor) -> None:
    meeting = asyncio.Barrier(2)

    async def meet() -> None:
        await meeting.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run("a", Work(meet)))
        group.create_task(executor.run("b", Work(meet)))


async def test_failed_work_does_not_stop_what_follows(executor: DeviceExecutor) -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def succeed() -> None:
        done.set()

    done = asyncio.Event()
    await executor.run("a", Work(fail))
    await executor.run("a", Work(succeed))
    assert done.is_set()


async def test_an_idle_device_costs_nothing(executor: DeviceExecutor) -> None:
    async def nothing() -> None:
        return

    await executor.run("a", Work(nothing))
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

    executor.submit("a", Work(fail))
    await executor.run("a", Work(succeed))
    assert done == ["failed", "done"]
    assert "work failed" in caplog.text
