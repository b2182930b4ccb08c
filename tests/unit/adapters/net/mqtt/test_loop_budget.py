import asyncio

from fleet.adapters.net.mqtt.loop_budget import LoopBudget


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
