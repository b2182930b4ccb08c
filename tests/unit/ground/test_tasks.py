import asyncio
import logging
from contextlib import suppress

import pytest

from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.tasks import Backoff, end_with_caller, finish, isolate, keep_running, running


async def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(("error", "message"), [(Unavailable("away"), "work failed"), (KeyError("x"), "work crashed")])
async def test_a_failure_stays_where_it_is_and_is_logged(
    error: Exception, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await isolate("the work", fail(error))
    assert [record.message for record in caplog.records] == [message]


async def test_a_failure_is_returned_and_not_logged_where_the_caller_handles_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected, other = Unavailable("away"), Fenced("gone")
    assert await isolate("the work", fail(expected), (Unavailable,)) is expected
    assert caplog.records == []
    assert await isolate("the work", fail(other), (Unavailable,)) is other
    assert [record.message for record in caplog.records] == ["work failed"]
    assert await isolate("the work", asyncio.sleep(0)) is None


async def test_cancellation_is_no_failure() -> None:
    with pytest.raises(asyncio.CancelledError):
        await isolate("the work", fail(asyncio.CancelledError()))  # type: ignore[arg-type]


async def test_work_is_begun_anew_until_it_is_cancelled() -> None:
    attempts: list[int] = []
    enough = asyncio.Event()

    async def work() -> None:
        attempts.append(1)
        if len(attempts) == 3:
            enough.set()
            await asyncio.Event().wait()
        raise Unavailable("away") if len(attempts) == 1 else OSError("reset")

    async with asyncio.timeout(5), running("work", lambda: keep_running("work", work, Backoff(first=0.001))):
        await enough.wait()


async def test_a_programming_error_is_not_tried_again() -> None:
    with pytest.raises(KeyError):
        await keep_running("work", lambda: fail(KeyError("x")), Backoff(first=0.001))  # type: ignore[arg-type]


async def test_the_failure_of_work_ends_the_block_beside_it() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(5), running("work", lambda: fail(Unavailable("gone"))):
            await asyncio.Event().wait()
    assert caught.group_contains(Unavailable)


async def test_what_must_be_finished_is_though_its_caller_is_cancelled_again_and_again() -> None:
    go, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go.wait()
        done.set()

    task = asyncio.create_task(finish("work", work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_a_failure_of_what_must_be_finished_comes_out() -> None:
    async def work() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await finish("work", work())


async def test_work_that_loses_cancellations_or_waits_while_it_cleans_up_ends_with_its_caller() -> None:
    lost = 0

    async def work() -> None:
        nonlocal lost
        while lost < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost += 1
        with suppress(OSError):
            await asyncio.Event().wait()

    async def caller() -> None:
        await end_with_caller("work", work())
        pytest.fail("it was cancelled")

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    assert lost == 3


async def test_work_that_has_lost_the_cancellation_and_returned_leaves_its_caller_cancelled() -> None:
    async def work() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    task = asyncio.create_task(keep_running("work", lambda: end_with_caller("work", work())))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()


async def test_a_failure_of_what_ends_with_its_caller_comes_out() -> None:
    with pytest.raises(ValueError, match="x"):
        await end_with_caller("work", fail(ValueError("x")))
