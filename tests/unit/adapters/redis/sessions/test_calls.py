"""What time does to calls; tests/integration/redis/test_calls.py has the rest, over real servers too."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.keys import CALL_KEPT_MS
from fleet.adapters.redis.sessions import calls as call_table
from fleet.adapters.redis.sessions.calls import MOST_PENDING, CallBegun, CallKnown, CallRefused, CallTable
from fleet.ground.errors import Unavailable
from tests.support.memory_store import MemoryConnection, connection_of
from tests.support.virtual_time import elapse

MAC = "aa:bb:cc:dd:ee:ff"


@pytest.fixture
async def calls(store: Store) -> CallTable:
    await Devices(store).appear(MAC, online=True, epoch=1)
    return CallTable(store)


async def test_the_next_worker_waits_only_for_the_rest_of_the_time(calls: CallTable) -> None:
    begun = await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(begun, CallBegun)
    await elapse(4)
    again = await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(again, CallKnown) and again.state == "pending" and 5.9 < again.seconds <= 6
    assert await calls.sweep(0) == []
    await elapse(7)
    assert await calls.sweep(0) == [(MAC, str(begun.id))]


async def test_a_call_is_known_for_long_after_its_end(calls: CallTable) -> None:
    begun = await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(begun, CallBegun) and await calls.complete(MAC, str(begun.id), "x")
    await elapse(CALL_KEPT_MS / 1000)
    assert isinstance(await calls.begin(MAC, "t1:c1", 10), CallKnown)
    await elapse(11)
    assert isinstance(await calls.begin(MAC, "t1:c1", 10), CallBegun)


class LostAnswers:
    """In the block Redis does what it is asked, and all of its answers are lost."""

    def __init__(self, connection: MemoryConnection, monkeypatch: pytest.MonkeyPatch) -> None:
        self._connection, self._monkeypatch = connection, monkeypatch
        self._usual = connection.ask

    def __enter__(self) -> None:
        self._monkeypatch.setattr(self._connection, "ask", self._lose)

    def __exit__(self, *_: object) -> None:
        self._monkeypatch.setattr(self._connection, "ask", self._usual)

    async def _lose(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        await self._usual(commands)
        raise RedisConnectionError("lost")


@pytest.fixture
def lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> LostAnswers:
    return LostAnswers(connection_of(store), monkeypatch)


async def test_a_call_whose_begin_got_no_answer_is_gone_on_with(calls: CallTable, lost: LostAnswers) -> None:
    with lost, pytest.raises(Unavailable):
        await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(await calls.begin(MAC, "t1:c1", 10), CallBegun)
    assert isinstance(await calls.begin(MAC, "t1:c1", 10), CallKnown)


async def test_another_worker_does_not_go_on_with_it(store: Store, calls: CallTable, lost: LostAnswers) -> None:
    with lost, pytest.raises(Unavailable):
        await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(await CallTable(store).begin(MAC, "t1:c1", 10), CallKnown)


async def test_only_so_many_unanswered_begins_are_remembered(
    calls: CallTable, lost: LostAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_table, "MOST_UNDECIDED", 1)
    for name in ("t1:c1", "t1:c2"):
        with lost, pytest.raises(Unavailable):
            await calls.begin(MAC, name, 10)
    assert isinstance(await calls.begin(MAC, "t1:c1", 10), CallKnown)
    assert isinstance(await calls.begin(MAC, "t1:c2", 10), CallBegun)


async def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the functions that Redis runs from now on."""
    connection, run = connection_of(store), list[str]()
    usual = connection.ask

    async def ask(commands: Sequence[Sequence[Any]]) -> list[Any]:
        run.extend(str(words[1]).rpartition("_")[0] for words in commands if words[0] == "FCALL")
        return await usual(commands)

    monkeypatch.setattr(connection, "ask", ask)
    return run


async def test_the_calls_of_a_message_are_begun_and_ended_by_one_function_each(
    store: Store, calls: CallTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await counted(store, monkeypatch)
    begun = await asyncio.gather(*(calls.begin(MAC, f"t1:c{number}", 10) for number in range(9)))
    assert run == ["fleet_call_begin"]
    numbers = [one.id for one in begun if isinstance(one, CallBegun)]
    assert len(set(numbers)) == 9 and await pending(store) == "9"
    ended = [calls.complete(MAC, str(number), f"answer {number}") for number in numbers[:8]]
    assert await asyncio.gather(*ended, calls.give_up(MAC, numbers[8], sent=True)) == [True] * 9
    assert run == ["fleet_call_begin", "fleet_call_finish"]
    assert await pending(store) == "0"
    assert [await calls.result(MAC, number) for number in numbers] == [f"answer {one}" for one in numbers[:8]] + [None]


async def pending(store: Store) -> str | None:
    return await store.client.hget(store.keys.device(MAC), "np")


async def test_calls_that_begin_together_are_refused_one_by_one(store: Store, calls: CallTable) -> None:
    earlier = await calls.begin(MAC, "t1:c0", 10)
    assert isinstance(earlier, CallBegun) and await calls.complete(MAC, str(earlier.id), "done before")
    names = ["t1:c0", *(f"t1:c{number}" for number in range(1, MOST_PENDING + 3)), "t1:c1"]
    begun = await asyncio.gather(*(calls.begin(MAC, name, 10) for name in names))
    assert begun[0] == CallKnown(earlier.id, "done", "done before")
    assert all(isinstance(one, CallBegun) for one in begun[1 : MOST_PENDING + 1])
    assert begun[MOST_PENDING + 1 : -1] == [CallRefused("busy")] * 2
    again, first = begun[-1], begun[1]
    assert isinstance(again, CallKnown) and (again.id, again.state) == (first.id, "pending")  # type: ignore[union-attr]
    assert again.seconds == 10
    assert await pending(store) == str(MOST_PENDING)


async def test_an_answer_that_comes_twice_at_once_counts_once(store: Store, calls: CallTable) -> None:
    begun = await calls.begin(MAC, "t1:c1", 10)
    assert isinstance(begun, CallBegun)
    answers = [calls.complete(MAC, str(begun.id), text) for text in ("first", "second")]
    assert await asyncio.gather(*answers) == [True, False]
    assert await calls.result(MAC, begun.id) == "first" and calls.ignored == {"repeated": 1}
    assert await pending(store) == "0"


async def test_calls_of_a_message_whose_begin_got_no_answer_are_gone_on_with(
    calls: CallTable, lost: LostAnswers
) -> None:
    names = [f"t1:c{number}" for number in range(3)]
    with lost:
        failed = await asyncio.gather(*(calls.begin(MAC, name, 10) for name in names), return_exceptions=True)
    assert all(isinstance(one, Unavailable) for one in failed)
    assert all([isinstance(await calls.begin(MAC, name, 10), CallBegun) for name in names])
