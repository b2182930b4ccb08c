import asyncio
from collections.abc import Sequence

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.together import Together


class Desk:
    """Answers questions with what they are, and notes which of them came together."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[int]]] = []
        self.failure: Exception | None = None
        self.open = asyncio.Event()
        self.together: Together[str, int, int] = Together("desk", self._answer)

    async def _answer(self, key: str, questions: Sequence[int]) -> list[int]:
        self.asked.append((key, list(questions)))
        await self.open.wait()
        if self.failure:
            raise self.failure
        return [10 * question for question in questions if question]

    async def ask(self, key: str, question: int) -> int:
        return await self.together.put(key, question)


async def test_questions_of_one_iteration_are_asked_together_by_key_and_each_has_its_answer() -> None:
    desk = Desk()
    desk.open.set()
    asked = [("a", 1), ("b", 2), ("a", 3)]
    assert await asyncio.gather(*(desk.ask(*one) for one in asked)) == [10, 20, 30]
    assert desk.asked == [("a", [1, 3]), ("b", [2])]
    assert await desk.ask("a", 4) == 40
    assert desk.asked[2:] == [("a", [4])]


async def test_a_question_that_comes_while_others_are_asked_does_not_wait_for_them() -> None:
    desk = Desk()
    first = asyncio.ensure_future(desk.ask("a", 1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.ensure_future(desk.ask("a", 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert desk.asked == [("a", [1]), ("a", [2])]
    desk.open.set()
    assert (await first, await second) == (10, 20)


async def test_who_is_cancelled_takes_no_answer_from_the_others() -> None:
    desk = Desk()
    first, second = (asyncio.ensure_future(desk.ask("a", number)) for number in (1, 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    desk.open.set()
    assert await second == 20
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_is_everybodys() -> None:
    desk = Desk()
    desk.failure = Unavailable("away")
    desk.open.set()
    failed = await asyncio.gather(desk.ask("a", 1), desk.ask("a", 2), return_exceptions=True)
    assert failed == [desk.failure] * 2


async def test_nobody_waits_for_an_answer_that_is_missing() -> None:
    desk = Desk()
    desk.open.set()
    failed = await asyncio.gather(desk.ask("a", 1), desk.ask("a", 0), return_exceptions=True)
    assert all(isinstance(one, ValueError) for one in failed)


async def test_what_is_asked_at_the_end_of_the_process_is_cancelled_for_everybody() -> None:
    desk = Desk()
    asked = [desk.together.put("a", number) for number in (1, 2)]
    await asyncio.sleep(0)
    for task in desk.together._asking:
        task.cancel()
    await asyncio.wait(asked)
    assert all(one.cancelled() for one in asked)
