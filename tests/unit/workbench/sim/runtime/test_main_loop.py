import asyncio

import pytest

from fleet.ground.errors import Overloaded
from fleet.workbench.sim.runtime.main_loop import MOST_TASKS, Flag, MainLoop


def _recorder(done: list[str], name: str):  # type: ignore[no-untyped-def]
    async def work() -> None:
        done.append(name)

    return work


async def test_events_come_before_tasks_in_their_fixed_order() -> None:
    loop, done = MainLoop(), list[str]()
    for flag in Flag:
        loop.on(flag, _recorder(done, flag.name))
    loop.schedule(_recorder(done, "task"))
    for flag in (Flag.TICK, Flag.SEND_AUDIO, Flag.STATE_CHANGED):
        loop.set(flag)
    await loop.run_pass()
    assert done == ["STATE_CHANGED", "SEND_AUDIO", "TICK", "task"]


async def test_what_a_task_causes_is_handled_one_pass_later() -> None:
    loop, done = MainLoop(), list[str]()
    loop.on(Flag.STATE_CHANGED, _recorder(done, "entered"))

    async def change() -> None:
        loop.set(Flag.STATE_CHANGED)
        loop.schedule(_recorder(done, "late"))

    loop.schedule(change)
    loop.schedule(_recorder(done, "early"))
    await loop.run_pass()
    assert done == ["early"]
    await loop.run_pass()
    assert done == ["early", "entered", "late"]


async def test_an_event_raised_twice_is_handled_once() -> None:
    loop, done = MainLoop(), list[str]()
    loop.on(Flag.BUTTON, _recorder(done, "button"))
    loop.set(Flag.BUTTON)
    loop.set(Flag.BUTTON)
    await loop.run_pass()
    assert done == ["button"]


async def test_a_task_that_waits_holds_up_the_next() -> None:
    loop, done, gate = MainLoop(), list[str](), asyncio.Event()

    async def wait() -> None:
        await gate.wait()
        done.append("waited")

    loop.schedule(wait)
    loop.schedule(_recorder(done, "next"))
    async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(loop.run_pass())
        await asyncio.sleep(0)
        assert done == []
        gate.set()
        await running
    assert done == ["waited", "next"]


def test_a_flood_of_tasks_is_refused() -> None:
    loop = MainLoop()
    for _ in range(MOST_TASKS):
        loop.schedule(_recorder([], ""))
    with pytest.raises(Overloaded):
        loop.schedule(_recorder([], ""))
