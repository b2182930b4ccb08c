import asyncio

import pytest

from fleet.ground.background import BackgroundTasks


async def test_work_is_refused_and_closed_while_nothing_is_open() -> None:
    tasks, begun = BackgroundTasks(), []

    async def work() -> None:
        begun.append(1)

    assert not tasks.open
    with pytest.raises(RuntimeError, match="greeting"):
        tasks.start("greeting", work())
    assert not begun


async def test_failure_of_one_leaves_the_others_running(caplog: pytest.LogCaptureFixture) -> None:
    tasks, done = BackgroundTasks(), asyncio.Event()

    async def fail() -> None:
        raise ValueError("broken")

    async def go_on() -> None:
        await asyncio.sleep(0)
        done.set()

    async with tasks.opened():
        tasks.start("failing", fail())
        tasks.start("other", go_on())
    assert done.is_set()
    assert not tasks.open
    assert "work crashed" in caplog.text
