"""What time does to calls; tests/integration/redis/test_calls.py has the rest, over real servers too."""

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.keys import CALL_KEPT_MS
from fleet.adapters.redis.sessions.calls import CallBegun, CallKnown, CallTable
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
