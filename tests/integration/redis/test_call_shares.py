"""Tenants share the queue of operators' calls and the list of their records; what is counted is what is there."""

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards import job_calls, operator_calls
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.redis.shards.operator_calls import OperatorCalls, QueuedCall
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.operator_calls import OperatorCall

QUEUE, RECORDS, JOBS = 12, 16, 8
TENANTS = 1, 2, 3
STEPS = 250
DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the lists short."""
    monkeypatch.setattr(operator_calls, "MOST_QUEUED", QUEUE)
    monkeypatch.setattr(operator_calls, "MOST_RECORDS", RECORDS)
    monkeypatch.setattr(job_calls, "LONGEST_QUEUE", QUEUE)
    monkeypatch.setattr(job_calls, "MOST_RECORDS", RECORDS)


class Shard:
    """The calls of one device, and who may have one more by what is there."""

    def __init__(self, store: Store, owner: Owner, mac: str) -> None:
        self.store, self.owner, self.mac = store, owner, mac
        self.number = store.keys.shard(mac)
        self.calls, self.jobs = OperatorCalls(store), JobCalls(store, 1)
        self.jobs.most_queued = JOBS
        self.queue, self.records = store.keys.operator_calls(self.number), store.keys.operator_records(self.number)
        self.names, self.tenants = itertools.count(1), dict[str, int]()

    def call(self, tenant: int, *, job: bool = False) -> OperatorCall:
        name = f"job-1-{next(self.names)}" if job else f"c{next(self.names)}"
        self.tenants[name] = tenant
        return OperatorCall(device=self.mac, call=name, tool="t", arguments={}, tenant=tenant)

    async def put(self, tenant: int) -> str:
        return await self.calls.put(self.call(tenant), 3_600, DAY)

    async def put_jobs(self, *tenants: int) -> list[bool]:
        """Queue calls of jobs together; return which of them had room."""
        some = [self.call(tenant, job=True) for tenant in tenants]
        full = await self.jobs.put(some, 60_000)
        return [one not in full for one in some]

    async def waiting(self) -> list[QueuedCall]:
        found: Any = await self.store.client.xrange(self.queue)
        return [QueuedCall(self.number, entry, operator_calls._open(fields)) for entry, fields in found]

    async def end(self, one: QueuedCall) -> None:
        assert one.call is not None
        await self.calls.end(self.owner, one.call, "ok", "", one.id)

    async def held(self) -> tuple[Counter[str], Counter[str]]:
        """Return what the queue and the list of records have, by the names of the counts; not what has expired."""
        queue, records = Counter[str](), Counter[str]()
        for one in await self.waiting():
            assert one.call is not None
            queue.update(("len", f"a{one.call.tenant}"))
            if one.call.call.startswith("job-"):
                queue.update(("jobs", f"j{one.call.tenant}"))
        for member in await self.store.client.zrangebyscore(self.records, 2, "+inf"):
            records.update(("len", f"a{self.tenants[member.split('|')[1]]}"))
        return queue, records

    async def counted(self, name: str) -> Counter[str]:
        found: Any = await self.store.client.hgetall(f"{name}n")
        return Counter({field: int(count) for field, count in found.items() if int(count)})

    async def check(self) -> None:
        for name, held in zip((self.queue, self.records), await self.held(), strict=True):
            counted = await self.counted(name)
            assert counted["len"] != held["len"] or counted == held

    async def expected(self, *tenants: int, jobs: bool = False) -> list[bool]:
        """Return which of some calls have room by the rule."""
        queue, records = await self.held()
        answers = []
        for tenant in tenants:
            room = queue[f"a{tenant}"] < QUEUE - queue["len"] and records[f"a{tenant}"] < RECORDS - records["len"]
            room = room and (not jobs or queue[f"j{tenant}"] < JOBS - queue["jobs"])
            answers.append(room)
            if room:
                queue.update(("len", f"a{tenant}"))
                records.update(("len", f"a{tenant}"))
                queue.update(("jobs", f"j{tenant}") if jobs else ())
        return answers


@pytest.fixture
async def shard(store: Store, owner: Owner, mac: str) -> Shard:
    return Shard(store, owner, mac)


async def _put(shard: Shard, draw: random.Random) -> None:
    tenant = draw.choice(TENANTS)
    room = await shard.expected(tenant)
    assert [await shard.put(tenant) == "queued"] == room


async def _put_jobs(shard: Shard, draw: random.Random) -> None:
    tenants = draw.choices(TENANTS, k=draw.randint(1, 4))
    room = await shard.expected(*tenants, jobs=True)
    assert await shard.put_jobs(*tenants) == room


async def _end(shard: Shard, draw: random.Random) -> None:
    if waiting := await shard.waiting():
        one = draw.choice(waiting)
        await shard.end(one)
        await shard.end(one)


async def _discard(shard: Shard, draw: random.Random) -> None:
    if waiting := await shard.waiting():
        await shard.calls.discard(draw.choice(waiting))


async def _forget(shard: Shard, draw: random.Random) -> None:
    """Forget outcomes of jobs, as control does; a repeated request changes nothing more."""
    outcomes = await shard.jobs.outcomes()
    some = draw.sample(outcomes, min(len(outcomes), 3))
    if some:
        await shard.jobs.forget(some)
        await shard.jobs.forget(some)


async def _expire(shard: Shard, draw: random.Random) -> None:
    """Let the life of records end."""
    members = await shard.store.client.zrange(shard.records, 0, -1)
    some = draw.sample(members, min(len(members), 4))
    if some:
        await shard.store.client.zadd(shard.records, dict.fromkeys(some, 1.0))


async def _erase(shard: Shard, draw: random.Random) -> None:
    """Take calls and records away without a function, as the end of a device does."""
    for one in (await shard.waiting())[:2]:
        await shard.store.client.xdel(shard.queue, one.id)
    for member in (await shard.store.client.zrange(shard.records, 0, -1))[:2]:
        await shard.store.client.zrem(shard.records, member)


async def test_who_may_have_one_more_call_follows_from_what_is_there_after_any_history(shard: Shard) -> None:
    await shard.jobs.begin()
    for seed in range(3):
        draw = random.Random(seed)
        for _ in range(STEPS):
            steps = [_put, _put_jobs, _end, _forget, _expire, _discard, _erase]
            (step,) = draw.choices(steps, weights=[8, 5, 4, 2, 2, 1, 1])
            await step(shard, draw)
            await shard.check()


async def test_one_tenant_has_half_of_the_queue_and_those_after_it_find_room(shard: Shard) -> None:
    await shard.jobs.begin()
    assert [await shard.put(1) for _ in range(8)] == ["queued"] * 6 + ["full"] * 2
    assert [await shard.put(2) for _ in range(4)] == ["queued"] * 3 + ["full"]
    assert await shard.put_jobs(1, 3, 3, 3) == [False, True, True, False]
    assert await shard.put(4) == "queued"
    waiting = await shard.waiting()
    await shard.end(waiting[0])
    await shard.end(waiting[1])
    assert await shard.put(5) == "queued"


async def test_calls_of_people_leave_the_places_of_jobs_to_them_and_jobs_those_of_people(shard: Shard) -> None:
    await shard.jobs.begin()
    while await shard.put(1) == "queued":
        pass
    assert (await shard.jobs.queued())[shard.number] == 0
    assert await shard.put_jobs(2, 2, 2, 2) == [True, True, True, False]
    assert (await shard.jobs.queued())[shard.number] == 3


async def test_records_that_are_kept_for_long_are_shared_among_tenants(shard: Shard) -> None:
    async def put_and_end(tenant: int) -> str:
        answer = await shard.put(tenant)
        for one in await shard.waiting():
            await shard.end(one)
        return answer

    assert [await put_and_end(1) for _ in range(10)] == ["queued"] * 8 + ["full"] * 2
    assert [await put_and_end(2) for _ in range(5)] == ["queued"] * 4 + ["full"]
    assert await put_and_end(3) == "queued"


async def test_counts_that_an_earlier_version_made_wrong_live_for_a_minute(shard: Shard) -> None:
    while await shard.put(1) == "queued":
        pass
    client, keys = shard.store.client, (f"{shard.queue}n", f"{shard.records}n")
    # It queued a call and ended another one: the length is right, and the counts are not.
    for one in (await shard.waiting())[:2]:
        await client.xdel(shard.queue, one.id)
        await client.xadd(shard.queue, {"m": '{"device":"d","call":"c","tool":"t","arguments":{}}'})
    for member in (await client.zrange(shard.records, 0, -1))[:2]:
        mac, name, _ = member.split("|")
        await client.zrem(shard.records, member)
        await client.zadd(shard.records, {f"{mac}|{name}": 2.0**50})
        shard.tenants[name] = 0
    assert await shard.put(1) == "full", "two of its six calls have ended"
    for key in keys:
        assert 0 < await client.ttl(key) <= 60
        await client.delete(key)
    assert await shard.put(1) == "queued"
    queue, records = await shard.held()
    assert (await shard.counted(shard.queue), queue["a0"]) == (queue, 2)
    assert (await shard.counted(shard.records), records["a0"]) == (records, 2)


async def test_records_that_are_gone_leave_their_list_when_it_is_counted(shard: Shard) -> None:
    while await shard.put(1) == "queued":
        pass
    gone = (await shard.waiting())[0].call
    assert gone is not None
    await shard.store.client.delete(shard.store.keys.operator_call(shard.mac, gone.call), f"{shard.records}n")
    await shard.put(2)
    members = await shard.store.client.zrange(shard.records, 0, -1)
    assert not any(member.split("|")[1] == gone.call for member in members)


async def test_what_the_functions_change_is_counted_without_reading_the_lists_again(shard: Shard) -> None:
    await shard.jobs.begin()
    shard.jobs.most_queued = 1_000
    assert await shard.put_jobs(1, 1, 1, 1, 1, 2, 2) == [True] * 7
    names = f"{shard.queue}n", f"{shard.records}n"
    for name in names:
        await shard.store.client.hset(name, "mark", 1)
    first, second, *_ = await shard.waiting()
    await shard.end(first)
    await shard.jobs.forget(await shard.jobs.outcomes())
    assert second.call is not None
    member = f"{shard.mac}|{second.call.call}|{second.call.tenant}"
    await shard.store.client.zadd(shard.records, {member: 1.0})
    assert await shard.put(2) == "queued"
    for name, held in zip(names, await shard.held(), strict=True):
        assert await shard.counted(name.removesuffix("n")) == held | Counter(mark=1)
