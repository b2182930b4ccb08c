import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet.core.shared_budget import BudgetShare, SharedBudget
from fleet.ground.tasks import running
from fleet.roles.gateway.resources import TEXTS_OF_ALL
from fleet.roles.gateway.turns.text_budget import ALWAYS_TAKEN, TEXTS_OF_CONNECTION, TextBudget
from fleet.roles.gateway.turns.turn import Choices, Question
from fleet.roles.gateway.turns.turns import MOST_WAITING, NO_MEMORY, GatewayTurns

LARGEST = 1024 * 1024
"""Bytes of a message."""
SMALL = "x" * (ALWAYS_TAKEN - sys.getsizeof(""))
CHOICES = Choices(0.5, 10, context=False)


class Connection:
    """The turns of one connection; each answer waits until `go` is set."""

    def __init__(self, budget: SharedBudget) -> None:
        self.share = BudgetShare(budget, TEXTS_OF_CONNECTION)
        self.turns = GatewayTurns(self._answer, TextBudget(self.share))
        self.go = asyncio.Event()
        self.answered: list[str] = []

    async def _answer(self, question: Question) -> None:
        await self.go.wait()
        self.answered.append(question.text)

    def ask(self, text: str) -> str:
        return self.turns.add(Question(text, "s", CHOICES))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with running("turns", self.turns.run):
            yield

    async def until_free(self) -> None:
        while self.turns.busy or self.share.taken:
            await asyncio.sleep(0)


def wide(letter: str) -> str:
    """Return the text that takes the most memory among those that fit into a message."""
    return "\U0001f600" + letter * (LARGEST - 100)


async def test_texts_of_a_connection_count_by_the_memory_that_they_take() -> None:
    connection = Connection(SharedBudget(TEXTS_OF_ALL))
    assert connection.ask(wide("a")) == ""
    assert connection.ask("b" * (LARGEST - 100)) == NO_MEMORY
    assert connection.ask(wide("c")) == NO_MEMORY
    assert 4 * (LARGEST - 200) < connection.share.taken <= TEXTS_OF_CONNECTION
    narrow = Connection(SharedBudget(TEXTS_OF_ALL))
    assert [narrow.ask("b" * (LARGEST - 100)) for _ in range(5)] == ["", "", "", "", NO_MEMORY]


async def test_small_texts_are_taken_whatever_memory_others_take() -> None:
    budget = SharedBudget(1)
    connection = Connection(budget)
    assert connection.ask("x" * ALWAYS_TAKEN) == NO_MEMORY
    assert [connection.ask(SMALL) for _ in range(MOST_WAITING)] == [""] * MOST_WAITING
    assert budget.used == MOST_WAITING * ALWAYS_TAKEN
    refused = connection.ask("one more")
    assert refused == "8 requests wait already; this one was not taken"
    assert budget.used == MOST_WAITING * ALWAYS_TAKEN


async def test_a_quarter_of_the_connections_does_not_take_all_memory() -> None:
    budget = SharedBudget(TEXTS_OF_ALL)
    text = wide("a")
    greedy = [Connection(budget) for _ in range(25)]
    for connection in greedy:
        assert connection.ask(text) == ""
        for _ in range(MOST_WAITING - 1):
            assert connection.ask(SMALL) == ""
        assert connection.ask(SMALL)
    assert Connection(budget).ask(text) == ""


async def test_all_connections_together_take_no_more_than_the_budget() -> None:
    budget = SharedBudget(TEXTS_OF_ALL)
    text = wide("a")
    taken = [Connection(budget).ask(text) for _ in range(40)]
    assert taken == [""] * 31 + [NO_MEMORY] * 9 or taken == [""] * 32 + [NO_MEMORY] * 8
    assert budget.used <= budget.limit


async def test_a_text_counts_until_it_is_answered() -> None:
    budget = SharedBudget(TEXTS_OF_ALL)
    connection = Connection(budget)
    async with connection.running():
        assert connection.ask(wide("a")) == ""
        while connection.turns._running is None:
            await asyncio.sleep(0)
        assert connection.ask(wide("b")) == NO_MEMORY, "the one that is being answered counts"
        connection.go.set()
        await connection.until_free()
        assert budget.used == 0
        assert connection.ask(wide("c")) == ""
        await connection.until_free()
    assert [text[1] for text in connection.answered] == ["a", "c"]


async def test_dropped_texts_count_no_more() -> None:
    budget = SharedBudget(TEXTS_OF_ALL)
    connection = Connection(budget)
    async with connection.running():
        for letter in "abc":
            assert connection.ask(letter * 100_000) == ""
        while connection.turns._running is None:
            await asyncio.sleep(0)
        assert connection.turns.drop() == 3
        await connection.until_free()
        assert budget.used == 0
        assert not connection.answered
    connection.share.close()
    assert budget.used == 0


@pytest.mark.parametrize("answered", [True, False])
async def test_no_text_is_kept_once_it_is_answered_or_dropped(answered: bool) -> None:
    class Text(str):
        """A text whose end is noticed."""

        def __del__(self) -> None:
            ended.append(True)

    ended: list[bool] = []
    connection = Connection(SharedBudget(TEXTS_OF_ALL))
    connection.answered = Forgetful()
    async with connection.running():
        connection.ask(Text("a"))
        await asyncio.sleep(0)
        if answered:
            connection.go.set()
        else:
            connection.turns.drop()
        await connection.until_free()
        assert ended == [True]


class Forgetful(list[str]):
    def append(self, _: str) -> None:
        """Keep nothing."""
