import asyncio

import pytest

from fleet.ground.loop_budget import LoopBudget

MANY = 600


async def test_what_fits_waits_for_nobody_and_timers_run_between_the_rest() -> None:
    budget, done = LoopBudget(100), list[int]()
    iterations = [0]

    def tick() -> None:
        iterations[0] += 1
        asyncio.get_running_loop().call_soon(tick)

    async def work(number: int, size: int) -> None:
        await budget.take(size)
        done.append(number)
        at.append(iterations[0])

    at: list[int] = []
    tick()
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(work(number, 50))
        group.create_task(work(10, 1000))
        group.create_task(work(11, 1))
    assert done == list(range(12))
    assert len(set(at)) >= 7
    assert max(at.count(one) for one in at) <= 2
    assert budget.waiting == 0


async def test_who_waits_no_longer_takes_nothing() -> None:
    budget = LoopBudget(100)
    first, second, third = (asyncio.create_task(budget.take(100)) for _ in range(3))
    await asyncio.sleep(0)
    assert first.done()
    second.cancel()
    await third
    assert second.cancelled()
    assert budget.waiting == 0


@pytest.mark.parametrize("size", [1, 50, 100, 1000])
async def test_many_messages_of_one_address_delay_that_of_another_by_one(size: int) -> None:
    budget, done, before = LoopBudget(100), list[str](), dict[str, int]()

    async def work(key: str, size: int) -> None:
        before[key] = MANY - budget.waiting
        await budget.take(size, key)
        done.append(key)

    async with asyncio.TaskGroup() as group:
        for _ in range(MANY):
            group.create_task(work("a", size))
        while len(done) < MANY // 2:
            await asyncio.sleep(0)
        group.create_task(work("b", 100))
    assert 0 < before["b"] < MANY - 50, "others still waited"
    assert done.index("b") <= before["b"] + 1


async def test_keys_take_turns_and_each_keeps_its_order() -> None:
    budget, done = LoopBudget(100), list[str]()

    async def work(name: str) -> None:
        await budget.take(100, name[0])
        done.append(name)

    async with asyncio.TaskGroup() as group:
        for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
            group.create_task(work(name))
    assert done == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
    assert budget.waiting == 0
