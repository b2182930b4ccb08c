import asyncio
from contextlib import AsyncExitStack

import pytest

from fleet.adapters.engine_pool import GRACE_SECONDS, EnginePool
from fleet.ground.errors import ConfigError
from tests.support.virtual_time import elapse


class Engines:
    """Opens engines that are numbers, and notes which of them were closed."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed: list[int] = []

    async def open(self, stack: AsyncExitStack) -> int:
        await asyncio.sleep(0)
        self.opened += 1
        stack.callback(self.closed.append, self.opened)
        return self.opened


async def test_an_engine_is_opened_once_for_all_who_need_it_at_a_time() -> None:
    pool, engines = EnginePool[int](), Engines()
    assert await asyncio.gather(*(pool.find("a", engines.open) for _ in range(3))) == [1, 1, 1]
    await pool.aclose()
    assert engines.closed == [1]


async def test_the_least_recently_used_engine_is_closed_when_its_last_request_is_over() -> None:
    pool, engines = EnginePool[int](most=2), Engines()
    for key in "abac":
        await pool.find(key, engines.open)
    assert engines.closed == []
    await elapse(GRACE_SECONDS + 1)
    assert await pool.find("d", engines.open) == 4
    assert engines.closed == [2]
    await pool.aclose()
    assert sorted(engines.closed) == [1, 2, 3, 4]


async def test_a_failure_is_tried_again() -> None:
    pool, engines = EnginePool[int](), Engines()

    async def fail(stack: AsyncExitStack) -> int:
        raise ConfigError("no")

    with pytest.raises(ConfigError):
        await pool.find("a", fail)
    assert await pool.find("a", engines.open) == 1
    await pool.aclose()
