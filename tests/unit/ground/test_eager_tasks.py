"""Tasks that begin at once."""

import asyncio
from contextvars import ContextVar

import pytest

from fleet.ground.eager_tasks import start_now

NAME: ContextVar[str] = ContextVar("name", default="")


async def test_the_work_runs_until_it_waits_before_the_function_returns() -> None:
    steps: list[str] = []
    gate = asyncio.Event()

    async def work() -> str:
        steps.append("begun")
        await gate.wait()
        steps.append("gone on")
        return "result"

    async with asyncio.TaskGroup() as group:
        task = start_now(group, "a task", work())
        assert (steps, task.get_name(), task.done()) == (["begun"], "a task", False)
        gate.set()
    assert (steps, task.result()) == (["begun", "gone on"], "result")


async def test_work_that_never_waits_has_its_result_too() -> None:
    async def work() -> int:
        return 7

    async with asyncio.TaskGroup() as group:
        task = start_now(group, "t", work())
    assert task.result() == 7


async def test_it_runs_inside_its_task_and_its_own_context() -> None:
    seen: list[object] = []

    async def work() -> None:
        token = NAME.set("inner")
        seen.append(asyncio.current_task())
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        seen.append(asyncio.current_task())
        NAME.reset(token)

    NAME.set("outer")
    outer = asyncio.current_task()
    async with asyncio.TaskGroup() as group:
        task = start_now(group, "t", work())
        assert (asyncio.current_task(), NAME.get()) == (outer, "outer")
    assert seen == [task, task]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_failure_ends_the_group(waits: bool) -> None:
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise KeyError("x")

    with pytest.raises(ExceptionGroup) as failure:
        async with asyncio.TaskGroup() as group:
            start_now(group, "t", work())
    assert [type(one) for one in failure.value.exceptions] == [KeyError]


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_cancellation_reaches_the_work_wherever_it_waits(turns: int) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            await asyncio.sleep(0)
            ended.append("cleaned up")
            raise

    async with asyncio.TaskGroup() as group:
        task = start_now(group, "t", work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled() and ended == ["cancelled", "cleaned up"]


async def test_work_may_swallow_a_cancellation() -> None:
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "went on"
        return ""

    async with asyncio.TaskGroup() as group:
        task = start_now(group, "t", work())
        task.cancel()
    assert task.result() == "went on"


async def test_a_closed_group_begins_nothing() -> None:
    begun: list[bool] = []

    async def work() -> None:
        begun.append(True)

    async with asyncio.TaskGroup() as group:
        pass
    idle = work()
    with pytest.raises(RuntimeError):
        start_now(group, "t", idle)
    idle.close()
    assert begun == []


@pytest.mark.parametrize("first_is_eager", [True, False])
async def test_works_may_wait_for_the_same_future(first_is_eager: bool) -> None:
    shared = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await shared

    async with asyncio.TaskGroup() as group:
        first = start_now(group, "a", work()) if first_is_eager else group.create_task(work())
        second = start_now(group, "b", work())
        await asyncio.sleep(0)
        shared.set_result("done")
    assert (first.result(), second.result()) == ("done", "done")


async def test_work_that_is_cancelled_at_once_gives_back_no_place_that_it_never_had() -> None:
    places = asyncio.Semaphore(1)
    await places.acquire()

    async def work() -> None:
        async with places:
            pass

    async with asyncio.TaskGroup() as group:
        start_now(group, "t", work()).cancel()
    assert places.locked()


async def test_a_cancellation_at_once_reaches_the_task_that_the_work_waits_for() -> None:
    inner = asyncio.create_task(asyncio.Event().wait())

    async def work() -> None:
        await inner

    async with asyncio.TaskGroup() as group:
        start_now(group, "t", work()).cancel()
    assert inner.cancelled()
