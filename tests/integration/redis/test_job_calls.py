"""What the calls of jobs do in Redis; whole jobs are tested in integration/sql/test_jobs."""

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.calls import (
    CallBegun,
    CallingOperator,
    CallKnown,
    CallRefused,
    CallTable,
    OperatorEnd,
)
from fleet.adapters.redis.shards.device_looks import DeviceNow
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import OperatorCalls, QueuedCall
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.operator_calls import OperatorCall


async def test_a_device_is_looked_up_with_the_zone_that_it_was_given(store: Store, mac: str) -> None:
    other = "02:00:00:00:00:99"
    await Admissions(store).set_timezone(mac, "Asia/Shanghai")
    await store.client.hset(store.keys.device(other), "on", "1")
    await store.client.hset(store.keys.session(other), "id", "s1")
    found = await JobCalls(store, 1).look([mac, other])
    assert found == {mac: DeviceNow(False, "", "", "Asia/Shanghai"), other: DeviceNow(True, "", "s1", "")}


async def _queued(store: Store, mac: str, call: str = "job-1-1") -> tuple[JobCalls, QueuedCall]:
    calls = JobCalls(store, 1)
    await calls.begin()
    await Devices(store).appear(mac, online=True, epoch=1)
    await calls.put([OperatorCall(device=mac, call=call, tool="t", arguments={})], 60_000)
    (entry,) = await OperatorCalls(store).read({store.keys.shard(mac): "0"})
    return calls, entry


async def _owner(store: Store, mac: str, worker: str = "w", lost: str = "") -> Owner:
    owner = await Leases(store, worker, 1_000).take(store.keys.shard(mac), lost)
    assert owner is not None
    return owner


async def test_the_answer_of_a_device_ends_the_call_of_a_job_in_the_same_step(store: Store, mac: str) -> None:
    owner, (calls, entry) = await _owner(store, mac), await _queued(store, mac)
    table = CallTable(store)
    begun = await table.begin(mac, "operator:job-1-1", 10, CallingOperator(owner, "job-1-1"))
    assert isinstance(begun, CallBegun)
    end = OperatorEnd(owner, "job-1-1", entry.id, "error", "broken")
    assert await table.complete(mac, str(begun.id), "[]", end) and end.done
    (outcome,) = await calls.outcomes()
    assert (outcome.device, outcome.call, outcome.state, outcome.text) == (mac, "job-1-1", "error", "broken")
    assert await OperatorCalls(store).read({entry.shard: "0"}) == []
    again = OperatorEnd(owner, "job-1-1", entry.id, "ok", "")
    assert not await table.complete(mac, str(begun.id), "[]", again) and not again.done
    assert len(await calls.outcomes()) == 1
    await calls.forget([outcome])
    assert await calls.outcomes() == [] and await calls.states([(mac, "job-1-1")]) == [None]


async def test_the_answer_that_a_former_owner_takes_leaves_the_call_to_the_next_one(store: Store, mac: str) -> None:
    owner, (calls, entry) = await _owner(store, mac), await _queued(store, mac)
    table = CallTable(store)
    begun = await table.begin(mac, "operator:job-1-1", 10, CallingOperator(owner, "job-1-1"))
    assert isinstance(begun, CallBegun)
    await _owner(store, mac, "other", owner.fence)
    end = OperatorEnd(owner, "job-1-1", entry.id, "ok", "")
    assert await table.complete(mac, str(begun.id), "[]", end), "what the device did is known"
    assert not end.done and await calls.outcomes() == []
    assert [one.id for one in await OperatorCalls(store).read({entry.shard: "0"})] == [entry.id]


async def test_a_call_for_idle_devices_begins_in_no_session_unless_it_had_begun_before(store: Store, mac: str) -> None:
    owner = await _owner(store, mac)
    await _queued(store, mac)
    await store.client.hset(store.keys.session(mac), "id", "s1")
    table, caller = CallTable(store), CallingOperator(owner, "job-1-1", idle=True)
    assert await table.begin(mac, "operator:job-1-1", 10, caller) == CallRefused("in session")
    await store.client.delete(store.keys.session(mac))
    begun = await table.begin(mac, "operator:job-1-1", 10, caller)
    assert isinstance(begun, CallBegun)
    await store.client.hset(store.keys.session(mac), "id", "s2")
    assert await table.begin(mac, "operator:job-1-1", 10, caller) == CallKnown(begun.id, "pending", "")


async def test_calls_of_a_batch_are_queued_once_each_up_to_the_bound(store: Store, mac: str) -> None:
    calls = JobCalls(store, 1)
    calls.most_queued = 3
    await calls.begin()
    some = [OperatorCall(device=mac, call=f"job-1-{number}", tool="t", arguments={}) for number in range(3)]
    assert await calls.put(some[:1], 60_000) == []
    assert await calls.put(some, 60_000) == some[2:]
    assert await calls.put(some[:2], 60_000) == [], "they are known"
    entries = await OperatorCalls(store).read({store.keys.shard(mac): "0"})
    assert [one.call for one in entries] == some[:2]
