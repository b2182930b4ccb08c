import asyncio

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.calls import MOST_PENDING, CallBegun, CallKnown, CallRefused, CallTable


@pytest.fixture
async def calls(store: Store, mac: str) -> CallTable:
    await Devices(store).appear(mac, online=True, epoch=1)
    return CallTable(store)


async def begin(calls: CallTable, mac: str, name: str = "turn:call", seconds: float = 60) -> CallBegun:
    begun = await calls.begin(mac, name, seconds)
    assert isinstance(begun, CallBegun)
    return begun


async def test_a_call_is_sent_once_and_completed_once(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    assert await calls.begin(mac, "turn:call", 60) == CallKnown(go.id, "pending", "")
    assert await calls.complete(mac, str(go.id), "answer")
    assert not await calls.complete(mac, str(go.id), "again")
    assert await calls.begin(mac, "turn:call", 60) == CallKnown(go.id, "done", "answer")


async def test_ids_are_numbers_that_firmware_can_hold(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    assert 0 < go.id < 2**31


async def test_an_answer_to_no_call_is_ignored(calls: CallTable, mac: str) -> None:
    assert not await calls.complete(mac, "12345", "x")
    assert not await calls.complete(mac, "not a number", "x")


async def test_an_offline_device_is_sent_nothing(store: Store, calls: CallTable, mac: str) -> None:
    await Devices(store).appear(mac, online=False, epoch=1)
    assert await calls.begin(mac, "turn:call", 60) == CallRefused("offline")


async def test_a_device_has_a_bounded_number_of_calls(calls: CallTable, mac: str) -> None:
    first = await begin(calls, mac, "call 0")
    for number in range(1, MOST_PENDING):
        await begin(calls, mac, f"call {number}")
    assert await calls.begin(mac, "one more", 60) == CallRefused("busy")
    await calls.complete(mac, str(first.id), "x")
    await begin(calls, mac, "one more")


async def test_a_call_without_an_answer_ends_as_unknown_and_its_late_answer_is_kept(
    store: Store, calls: CallTable, mac: str
) -> None:
    go = await begin(calls, mac, seconds=0.001)
    ended: list[tuple[str, str]] = []
    async with asyncio.timeout(240):
        while not ended:
            ended = await calls.sweep(store.keys.shard(mac))
    assert ended == [(mac, str(go.id))]
    assert not await calls.complete(mac, str(go.id), "late")
    assert await calls.begin(mac, "turn:call", 60) == CallKnown(go.id, "unknown", "late")


async def test_giving_up_loses_against_an_answer(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    await calls.complete(mac, str(go.id), "answer")
    assert not await calls.give_up(mac, go.id, sent=True)
    assert await calls.result(mac, go.id) == "answer"


async def test_a_call_that_was_never_sent_says_so(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    assert await calls.give_up(mac, go.id, sent=False)
    assert await calls.begin(mac, "turn:call", 60) == CallKnown(go.id, "not sent", "")


async def test_a_call_whose_record_expired_does_not_keep_its_device_busy(
    store: Store, calls: CallTable, mac: str
) -> None:
    go = await begin(calls, mac, seconds=0.001)
    await store.client.delete(store.keys.call(mac, go.id))
    async with asyncio.timeout(240):
        while await store.client.zcard(store.keys.deadlines(store.keys.shard(mac))):
            await calls.sweep(store.keys.shard(mac))
    assert await store.client.hget(store.keys.device(mac), "np") == "0"


async def test_only_the_first_late_answer_is_kept(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    assert await calls.give_up(mac, go.id, sent=True)
    assert await calls.late(mac, go.id) is None
    assert not await calls.complete(mac, str(go.id), "late")
    assert not await calls.complete(mac, str(go.id), "later")
    assert await calls.late(mac, go.id) == "late"
    assert await calls.result(mac, go.id) is None
    assert calls.ignored == {"late": 1, "repeated": 1}


async def test_an_answer_to_what_was_never_sent_changes_nothing(calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    assert await calls.give_up(mac, go.id, sent=False)
    assert not await calls.complete(mac, str(go.id), "x")
    assert await calls.begin(mac, "turn:call", 60) == CallKnown(go.id, "not sent", "")


async def test_a_sweep_is_bounded(store: Store, calls: CallTable, mac: str) -> None:
    for number in range(3):
        await begin(calls, mac, f"call {number}", seconds=0.001)
    swept: list[int] = []
    async with asyncio.timeout(240):
        while sum(swept) < 3:
            swept.append(len(await calls.sweep(store.keys.shard(mac), limit=2)))
    assert max(swept) <= 2


async def test_a_record_that_expired_unswept_frees_its_place(store: Store, calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac, seconds=0.001)
    await store.client.delete(store.keys.call(mac, go.id))
    async with asyncio.timeout(240):
        while await store.client.zcard(store.keys.deadlines(store.keys.shard(mac))):
            await calls.sweep(store.keys.shard(mac))
    assert await store.client.hget(store.keys.device(mac), "np") == "0"


async def test_a_device_that_was_forgotten_meanwhile_owes_nothing(store: Store, calls: CallTable, mac: str) -> None:
    go = await begin(calls, mac)
    await store.client.delete(store.keys.device(mac))
    await Devices(store).appear(mac, online=True, epoch=2)
    assert await calls.complete(mac, str(go.id), "x")
    assert await store.client.hget(store.keys.device(mac), "np") in (None, "0")
