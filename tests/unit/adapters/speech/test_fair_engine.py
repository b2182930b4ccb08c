import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fleet.adapters.speech.fair_engine import FairEngine
from fleet.ground.errors import Overloaded
from fleet.ground.requester import working_for
from tests.unit.adapters.speech.test_engines import LIMIT, Gate


async def test_who_has_used_the_engine_less_goes_first_and_is_not_refused() -> None:
    engine, gate, order = FairEngine("test", threads=1, queue=3), Gate(), list[str]()

    def work(who: str, piece: Callable[[], Any]) -> asyncio.Task[Any]:
        with working_for(who):
            return asyncio.create_task(engine.run(piece, LIMIT))

    async with asyncio.timeout(240):
        await work("often", lambda: sum(range(100_000)))
        running = work("often", gate)
        await gate.began()
        waiting = [work("often", partial(order.append, name)) for name in ("first", "second", "third")]
        await asyncio.sleep(0)
        late = work("seldom", partial(order.append, "seldom"))
        refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [type(one.exception()) for one in refused] == [Overloaded]
        another = work("often", partial(order.append, "another"))
        with pytest.raises(Overloaded):
            await another
        gate.open.set()
        await asyncio.gather(running, late, *(one for one in waiting if one not in refused))
    assert order[0] == "seldom" and len(order) == 3
    engine.close()


async def test_short_work_goes_before_long_work() -> None:
    engine, gate, order = FairEngine("test", threads=1, queue=3), Gate(), list[str]()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        group.create_task(engine.run(gate, LIMIT))
        await gate.began()
        for name, expected in (("long", 2.0), ("short", 0.2)):
            group.create_task(engine.run(partial(order.append, name), LIMIT, expected))
            await asyncio.sleep(0)
        gate.open.set()
    assert order == ["short", "long"]
    engine.close()
