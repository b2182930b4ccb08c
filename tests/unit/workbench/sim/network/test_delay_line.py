import asyncio

from fleet.workbench.sim.network.delay_line import MOST, DelayLine


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.came: list[str] = []
        self.line: DelayLine[str] = DelayLine(lambda: self.now, self.take)

    async def take(self, thing: str) -> None:
        self.came.append(thing)


async def test_things_come_in_the_order_of_their_times() -> None:
    bench = Bench()
    for thing, due in (("late", 3.0), ("first", 1.0), ("second", 1.0)):
        assert bench.line.put(thing, due)
    await bench.line.advance(0.5)
    assert bench.came == []
    await bench.line.advance(2.0)
    assert bench.came == ["first", "second"]
    await bench.line.advance(3.0)
    assert bench.came == ["first", "second", "late"]


async def test_beyond_its_size_things_are_lost() -> None:
    bench = Bench()
    assert all(bench.line.put("x", 1.0) for _ in range(MOST))
    assert not bench.line.put("x", 1.0)


async def test_a_closed_line_drops_what_is_under_way_and_ends() -> None:
    loop = asyncio.get_running_loop()
    came: list[str] = []

    async def take(thing: str) -> None:
        came.append(thing)

    line: DelayLine[str] = DelayLine(loop.time, take)
    async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
        tasks.create_task(line.run())
        line.put("never", loop.time() + 1000)
        await asyncio.sleep(0)
        line.close()
    assert came == []
    assert not line.put("more", 0.0)


async def test_a_running_line_hands_over_what_is_due() -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()

    async def take(_: str) -> None:
        came.set()

    line: DelayLine[str] = DelayLine(loop.time, take)
    async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
        tasks.create_task(line.run())
        line.put("far", loop.time() + 1000)
        await asyncio.sleep(0)
        line.put("near", loop.time() + 0.01)
        await came.wait()
        line.close()
