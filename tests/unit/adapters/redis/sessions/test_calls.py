"""What time does to calls; tests/integration/redis/test_calls.py has the rest, over real servers too."""

from collections.abc import Sequence
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.keys import CALL_KEPT_MS
from fleet.adapters.redis.sessions import calls as call_table
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
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
