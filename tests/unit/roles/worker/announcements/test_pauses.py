"""When a device in a session can be spoken to."""

import asyncio

import pytest

from fleet.ground.tasks import running
from fleet.roles.worker.announcements.pauses import (
    LONGEST_ANSWER_SECONDS,
    MOST_DEVICES,
    QUIET_SECONDS,
    AnswerEnd,
    AnswerPauses,
)
from tests.support.virtual_time import elapse

MAC = "aa:bb:cc:dd:ee:ff"


async def seconds(pauses: AnswerPauses) -> float:
    """Return how long one has to wait for a pause."""
    clock = asyncio.get_running_loop().time
    began = clock()
    await pauses.wait(MAC)
    return clock() - began


async def test_nobody_speaks_after_five_quiet_seconds() -> None:
    pauses = AnswerPauses()
    assert await seconds(pauses) == pytest.approx(QUIET_SECONDS)
    pauses.begin(MAC, "t1")
    pauses.end(MAC, "t1", "spoken")
    assert await seconds(pauses) == pytest.approx(QUIET_SECONDS), "the next answer may come at once"


async def test_the_end_of_an_answer_is_a_pause_also_of_one_that_began_meanwhile() -> None:
    pauses = AnswerPauses()

    async def answer() -> None:
        await elapse(2.0)
        pauses.begin(MAC, "t1")
        await elapse(20.0)
        pauses.end(MAC, "t1", "cut_short")

    async with running("answer", answer):
        assert await seconds(pauses) == pytest.approx(22.0, abs=0.2)


async def test_an_answer_without_an_end_is_not_waited_for_for_ever() -> None:
    pauses = AnswerPauses()
    pauses.begin(MAC, "t1")
    assert await seconds(pauses) == pytest.approx(LONGEST_ANSWER_SECONDS)
    assert await pauses.outcome(MAC, "t1") == AnswerEnd()


async def test_the_outcome_of_an_answer_comes_with_its_end() -> None:
    pauses = AnswerPauses()
    pauses.begin(MAC, "t1")

    async def answer() -> None:
        await elapse(3.0)
        pauses.begin(MAC, "t1")
        pauses.end(MAC, "t0", "spoken")
        pauses.end(MAC, "t1", "cut_short", 2)

    async with running("answer", answer):
        assert await pauses.outcome(MAC, "t1") == AnswerEnd("cut_short", 2)
    assert await pauses.outcome(MAC, "t1") == AnswerEnd("cut_short", 2)
    assert await pauses.outcome(MAC, "t0") == AnswerEnd() == await pauses.outcome("another", "t1")


async def test_a_user_who_goes_on_makes_no_pause() -> None:
    pauses = AnswerPauses()
    pauses.begin(MAC, "t1")
    pauses.withdraw(MAC, "t0", 1)
    pauses.withdraw(MAC, "t1", 0)

    async def follow() -> None:
        await elapse(20.0)
        pauses.begin(MAC, "t2")

    async with running("turn", follow):
        outcome = asyncio.ensure_future(pauses.outcome(MAC, "t1"))
        assert await seconds(pauses) == pytest.approx(20.0)
        assert await outcome == AnswerEnd(None, 0)


async def test_a_turn_that_follows_another_ends_it() -> None:
    pauses = AnswerPauses()
    pauses.begin(MAC, "t1")

    async def follow() -> None:
        await elapse(3.0)
        pauses.begin(MAC, "t2")

    async with running("turn", follow):
        assert await pauses.outcome(MAC, "t1") == AnswerEnd()
        assert await seconds(pauses) == pytest.approx(LONGEST_ANSWER_SECONDS), "now it is the newer one that is spoken"


@pytest.mark.parametrize("answers", [False, True])
async def test_nobody_waits_for_a_pause_in_a_session_that_has_ended_but_for_the_end_of_its_answer(
    *, answers: bool
) -> None:
    pauses = AnswerPauses()
    if answers:
        pauses.begin(MAC, "t1")

    async def leave() -> None:
        await elapse(2.0)
        pauses.leave(MAC)
        await elapse(1.0)
        pauses.end(MAC, "t1", "cut_short", 1)

    async with running("device", leave):
        outcome = asyncio.ensure_future(pauses.outcome(MAC, "t1"))
        assert await seconds(pauses) == pytest.approx(2.0)
        assert await seconds(pauses) == pytest.approx(QUIET_SECONDS), "the next session has pauses of its own"
        assert await outcome == (AnswerEnd("cut_short", 1) if answers else AnswerEnd())


async def test_of_too_many_devices_the_earliest_answer_is_forgotten() -> None:
    pauses = AnswerPauses()
    pauses.begin("first", "t")
    pauses.begin("second", "t")
    pauses.begin("first", "t")
    for number in range(MOST_DEVICES - 1):
        pauses.begin(f"{number}", "t")
    for mac in ("first", "second"):
        pauses.end(mac, "t", "spoken")
    ends = await pauses.outcome("first", "t"), await pauses.outcome("second", "t")
    assert ends == (AnswerEnd("spoken"), AnswerEnd())
