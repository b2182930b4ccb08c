"""Jobs on both kinds of database: the leader's work, with owners of shards that answer as each test says."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from sqlalchemy import insert, select, update

from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_rows import DeviceRows
from fleet.adapters.sql.event_rows import EventLog, StoredEvent
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_rows import JobRows
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, LISTED_TOOL, TENANT, TOOL_LIST
from fleet.core.job_order import JobOrder, stored_place
from fleet.ground.errors import Fenced, Unavailable
from fleet.ground.metrics import jobs as counted
from fleet.wire.job_states import OPEN_STATES
from fleet.wire.operator_calls import LATE, OFFLINE, OperatorCall
from tests.support.job_site import FIRST, NOW, JobSite, done
from tests.support.memory_store import memory_store

FAST = {"rate": 5_000, "window": 1_000}
TOOL = "self.audio_speaker.set_volume"


@pytest.fixture
async def site(database: Database) -> JobSite:
    one = JobSite(database, await memory_store())
    await one.lead()
    return one


async def kinds(database: Database) -> list[str]:
    return [one.kind for one in await EventLog(database).after(0, 1_000)]


async def test_every_device_of_the_query_is_called_once_and_its_answer_kept(site: JobSite) -> None:
    macs, before = await site.add_devices(60), counted.executions.read()[("ok",)]
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).where(DEVICE.c.mac < FIRST + 40).values(board="b1"))
    job = await site.add_job(query="board=b1", policy=FAST, arguments={"volume": 4})
    await site.prepare()
    ended = await site.run(job.id)
    assert (ended.state, ended.counts["ok"], ended.total) == ("done", 40, 40)
    assert sum(ended.counts[state] for state in OPEN_STATES) == 0
    assert site.published == Counter(macs[:40])
    rows = await site.executions(job.id)
    assert {(one.state, one.text, one.attempt) for one in rows} == {("ok", "true", 1)}
    assert [one.mac for one in rows] == macs[:40]
    assert await kinds(site.database) == ["job.running", "job.done"]
    assert await site.waiting_calls() == []
    assert counted.executions.read()[("ok",)] == before + 40


async def test_places_in_sql_are_those_of_the_order_and_a_query_puts_its_devices_first(site: JobSite) -> None:
    macs = await site.add_devices(300)
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).where(DEVICE.c.mac >= FIRST + 290).values(board="canary"))
    stages = [{"query": "board=canary", "min_sample": 1}, {"share": 0.2}, {"share": 1}]
    job = await site.add_job(policy={**FAST, "stages": stages})
    await site.prepare()
    order = JobOrder.of(job.id)
    async with site.database.reading() as connection:
        found = dict((await connection.execute(select(JOB_EXECUTION.c.mac, JOB_EXECUTION.c.place))).all())
    exact = {mac: order.place(mac_number(mac), int(mac < macs[290])) for mac in macs}
    assert found == {mac_number(mac): stored_place(place) for mac, place in exact.items()}
    reached = []

    def note(call: OperatorCall) -> tuple[CallState, str]:
        reached.append(call.device)
        return "ok", ""

    assert (await site.run(job.id, note)).state == "done"
    assert sorted(reached[:10]) == macs[290:]
    second = sorted(macs[:290], key=lambda mac: order.place(mac_number(mac), 1))[:50]
    assert set(reached[10:60]) == set(second), "the second stage has a fifth of all devices, those of the first too"
    assert await kinds(site.database) == ["job.running", "job.stage", "job.stage", "job.done"]


async def test_a_canary_that_fails_halts_and_no_other_device_is_touched(site: JobSite) -> None:
    await site.add_devices(500)
    policy = {"stages": [{"count": 30, "min_sample": 20}, {"share": 1}], "rate": 5_000, "window": 10, "halt_sample": 20}
    job = await site.add_job(policy=policy)
    await site.prepare()
    halted = await site.run(job.id, lambda _: ("error", "no"))
    assert (halted.state, halted.stage) == ("halted", 0)
    assert len(site.published) <= 10 + 20 and halted.counts["error"] == len(site.published)
    assert halted.reason == "20 of 20 failed, more than 0.1 of them"
    before = site.published.copy()
    await site.step()
    assert await site.answer() == 0 and site.published == before
    assert (await kinds(site.database))[-1] == "job.halted"


async def test_a_job_halts_when_nobody_knows_what_devices_did(site: JobSite) -> None:
    await site.add_devices(50)
    job = await site.add_job(policy={**FAST, "window": 5, "halt_sample": 10})
    await site.prepare()
    halted = await site.run(job.id, lambda _: ("unknown", "gone"))
    assert (halted.state, halted.counts["unknown"]) == ("halted", len(site.published))
    assert len(site.published) <= 5 + 10


async def test_offline_devices_wait_and_are_fed_some_time_after_they_connect(site: JobSite) -> None:
    macs = await site.add_devices(8)
    await site.connect(macs[3:], online=False)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    waiting = await site.run(job.id)
    assert (waiting.counts["ok"], waiting.counts["waiting"], waiting.reason) == (3, 5, "devices")
    await site.connect(macs[3:5])
    site.feeder.notice([StoredEvent(1, 1, NOW, "device.online", mac_number(mac), "{}") for mac in macs[3:5]])
    await site.step()
    rows = sorted(await site.executions(job.id, "waiting"), key=lambda one: one.mac)
    assert [one.mac for one in rows] == macs[3:]
    assert {one.text for one in rows} == {OFFLINE}
    assert max(one.place for one in rows[:2]) < min(one.place for one in rows[2:]), "they have a time now"
    assert await site.answer() == 0, "but not at once"
    await _make_due(site)
    assert (await site.run(job.id)).counts["ok"] == 5
    await site.connect(macs)
    await site.work.sweep()
    await _make_due(site)
    assert (await site.run(job.id)).state == "done", "a missed event is made up for"


async def _make_due(site: JobSite) -> None:
    """Let the times of waiting devices come."""
    async with site.database.writing() as connection:
        waits = JOB_EXECUTION.c.state == 1, JOB_EXECUTION.c.place < 2**60
        await connection.execute(update(JOB_EXECUTION).where(*waits).values(place=0))


async def test_calls_that_were_not_sent_wait_and_late_ones_fail(site: JobSite) -> None:
    macs = await site.add_devices(4)
    job = await site.add_job(policy={**FAST, "retries": 1, "repeatable": False, "halt_sample": 100})
    await site.prepare()
    outcomes: dict[str, tuple[CallState, str]] = {
        macs[0]: ("not_sent", OFFLINE),
        macs[1]: ("not_sent", LATE),
        macs[2]: ("unknown", "gone"),
        macs[3]: ("not_sent", "the device has too many calls to do"),
    }
    await site.run(job.id, lambda call: outcomes[call.device])
    rows = {one.mac: one for one in await site.executions(job.id)}
    assert {mac: rows[mac].state for mac in macs} == dict(
        zip(macs, ["waiting", "waiting", "unknown", "waiting"], strict=True)
    )
    assert [rows[mac].retries for mac in macs] == [0, 1, 0, 0]
    await _make_due(site)
    await site.run(job.id, lambda call: outcomes[call.device])
    assert (await site.executions(job.id, "timed_out"))[0].mac == macs[1], "its retry was late, too"


async def test_devices_in_a_session_or_in_their_quiet_hours_are_left_alone(site: JobSite) -> None:
    macs = await site.add_devices(3)
    keys = site.store.keys
    await site.store.ask(site.store.client.hset(keys.session(macs[0]), "id", "s1"))
    idle = await site.add_job(policy=FAST)
    await site.prepare()
    found = await site.run(idle.id)
    assert (found.counts["ok"], found.counts["waiting"]) == (2, 1)
    quiet = await site.add_job(policy={**FAST, "quiet": "00:00-23:59", "idle": False})
    await site.prepare()
    assert (await site.run(quiet.id)).counts["waiting"] >= 2, "but for a minute before midnight"


async def test_devices_without_the_tool_and_revoked_ones_are_skipped(site: JobSite) -> None:
    macs = await site.add_devices(4)
    async with site.database.writing() as connection:
        for number, tool in enumerate((TOOL, "self.other"), 1):
            await connection.execute(insert(TOOL_LIST).values(id=number, digest=tool))
            await connection.execute(insert(LISTED_TOOL).values(list=number, tool=tool))
            await connection.execute(update(DEVICE).where(DEVICE.c.mac == FIRST + number).values(tool_list=number))
        await connection.execute(update(DEVICE).where(DEVICE.c.mac == FIRST + 3).values(state="revoked"))
    job = await site.add_job(policy=FAST, tool=TOOL)
    await site.prepare()
    ended = await site.run(job.id)
    assert (ended.state, ended.counts["ok"], ended.counts["skipped"]) == ("done", 2, 2)
    assert set(site.published) == set(macs[:2])
    reasons = {one.mac: one.text for one in await site.executions(job.id, "skipped")}
    assert reasons == {macs[2]: "the device has no such tool", macs[3]: "the device is revoked"}


async def test_a_device_that_left_the_tenant_is_not_called(site: JobSite) -> None:
    await site.add_devices(2)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="other", name="Other", created=0))
        await connection.execute(update(DEVICE).where(DEVICE.c.mac == FIRST).values(tenant=2))
    ended = await site.run(job.id)
    assert (ended.state, ended.counts["ok"], ended.counts["skipped"]) == ("done", 1, 1)


async def test_a_forgotten_device_leaves_its_jobs(site: JobSite) -> None:
    macs = await site.add_devices(3)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    assert await DeviceRows(site.database, 1).forget(macs[0])
    ended = await site.run(job.id)
    assert (ended.state, ended.total, [one.mac for one in await site.executions(job.id)]) == ("done", 2, macs[1:])


async def test_new_members_join_a_continuous_job_once(site: JobSite) -> None:
    macs = await site.add_devices(3)
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).where(DEVICE.c.mac == FIRST).values(board="b1"))
    job = await site.add_job(policy=FAST, query="board=b1", continuous=True)
    for _ in range(3):
        await site.prepare()
        await asyncio.sleep(0.01)
        await site.step()
        await site.answer()
    assert site.published == Counter(macs[:1])
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).values(board="b1"))
    while site.published != Counter(macs):
        await site.prepare()
        await asyncio.sleep(0.01)
        await site.step()
        await site.answer()
        assert max(site.published.values()) == 1
    assert site.published == Counter(macs)
    assert (await site.job(job.id)).state == "running"


async def test_stopping_cancels_and_expiry_gives_up_what_was_not_handed_over(site: JobSite) -> None:
    await site.add_devices(30)
    stopped, expired = [await site.add_job(policy={**FAST, "window": 5}) for _ in range(2)]
    await site.prepare()
    for job in (stopped, expired):
        await site.fill(job.id, 5)
        column = {"state": "stopping"} if job is stopped else {"expires": 1}
        await JobRows(site.database, 1).change(job.id, **column)
        await site.step()
    assert (await site.job(stopped.id)).state == "stopping", "what is under way gets its outcome"
    ended = [await site.run(job.id) for job in (stopped, expired)]
    await site.run(expired.id)
    ended = [await site.job(job.id) for job in (stopped, expired)]
    assert [one.state for one in ended] == ["stopped", "done"]
    assert [one.counts["ok"] for one in ended] == [5, 5]
    assert (ended[0].counts["cancelled"], ended[1].counts["expired"]) == (25, 25)


async def test_a_paused_job_hands_nothing_over_and_goes_on_later(site: JobSite) -> None:
    await site.add_devices(30)
    job = await site.add_job(policy={**FAST, "window": 5})
    await site.prepare()
    await site.fill(job.id, 5)
    await JobRows(site.database, 1).change(job.id, state="paused")
    await site.answer()
    await site.step()
    paused = await site.job(job.id)
    assert (paused.counts["ok"], paused.counts["sent"], await site.answer()) == (5, 0, 0)
    await JobRows(site.database, 1).change(job.id, state="running")
    assert (await site.run(job.id)).state == "done"
    assert set(site.published.values()) == {1}


async def test_failed_executions_are_tried_again_once(site: JobSite) -> None:
    macs = await site.add_devices(10)
    job = await site.add_job(policy={**FAST, "halt_share": 1.0})
    await site.prepare()
    ended = await site.run(job.id, lambda call: done(call) if call.device > macs[2] else ("error", "no"))
    assert (ended.state, ended.counts["error"]) == ("done", 3)
    again = {"state": "running", "retry_states": 1 << 4, "retry_until": 2**60}
    await JobRows(site.database, 1).change(job.id, **again)
    assert (await site.run(job.id)).counts["ok"] == 10
    assert [site.published[mac] for mac in macs] == [2] * 3 + [1] * 7
    assert set(site.names.values()) == {1}, "each with a name of its own"


async def test_collected_answers_become_attributes(site: JobSite) -> None:
    (mac,) = await site.add_devices(1, attributes={"owner": "Ada"})
    job = await site.add_job(kind="collect", tool="", collect="status", policy=FAST)
    await site.prepare()
    await site.run(job.id, lambda _: ("ok", '{"battery": {"level": 50}}'))
    device = await DeviceRows(site.database, 1).read(mac)
    assert device is not None and device.attributes == {"owner": "Ada", "status": {"battery": {"level": 50}}}


@pytest.mark.parametrize(
    "text",
    ['{"a": 1e999}', "[-1e999]", "NaN", '{"a": "\\ud800"}', '{"\\u0000": "\\u0000"}', "[" * 900, "1" * 4_200, "\0"],
)
async def test_an_answer_that_no_database_keeps_stops_no_job(site: JobSite, text: str) -> None:
    macs = await site.add_devices(2)
    job = await site.add_job(kind="collect", tool="", collect="status", policy=FAST)
    await site.prepare()
    ended = await site.run(job.id, lambda call: ("ok", text if call.device == macs[0] else '{"battery": 5}'))
    assert (ended.state, ended.counts["ok"]) == ("done", 2)
    sound = await DeviceRows(site.database, 1).read(macs[1])
    assert sound is not None and sound.attributes == {"status": {"battery": 5}}
    odd = await DeviceRows(site.database, 1).read(macs[0])
    assert odd is not None
    json.dumps(odd.attributes, allow_nan=False, ensure_ascii=False).encode()


async def test_killed_at_any_point_nothing_is_lost_and_nothing_is_sent_twice(site: JobSite) -> None:
    macs = await site.add_devices(200)
    dice = random.Random(7)
    job = await site.add_job(policy={"rate": 5_000, "window": 40, "stages": [{"share": 0.3}, {"share": 1}]})
    while (await site.job(job.id)).state == "preparing":
        await site.prepare()
    calls, outcomes = site.store.client, 0
    for _ in range(3_000):
        with _killed_after(site, dice.randrange(1, 12)):
            try:
                await site.step()
                await site.step()
            except _Killed:
                pass
        outcomes += await site.answer(lambda call: done(call) if dice.random() < 0.5 else None)
        if (await site.job(job.id)).state == "done":
            break
        try:
            with _killed_after(site, dice.randrange(1, 40)):
                await site.lead()
        except _Killed:
            await site.lead()
    ended = await site.job(job.id)
    assert (ended.state, ended.counts["ok"]) == ("done", 200), ended
    assert site.published == Counter(macs)
    assert calls is site.store.client and outcomes == 200


class _Killed(Exception):
    """Control was killed here."""


def _killed_after(site: JobSite, steps: int) -> "_Killer":
    return _Killer(site, steps)


class _Killer:
    """Raises before or after a step that writes into SQL or Redis: what follows never happens."""

    def __init__(self, site: JobSite, steps: int) -> None:
        self._store, self._database, self._left = site.store, site.database, steps

    def __enter__(self) -> None:
        self._call, self._writing = self._store.call, self._database.writing
        self._store.call = self._counted_call  # type: ignore[method-assign,assignment]
        self._database.writing = self._counted_writing  # type: ignore[method-assign,assignment]

    def __exit__(self, *_: object) -> None:
        self._store.call, self._database.writing = self._call, self._writing  # type: ignore[method-assign]

    def _step(self) -> None:
        self._left -= 1
        if self._left <= 0:
            raise _Killed

    async def _counted_call(self, *words: object) -> object:
        self._step()
        answer = await self._call(*words)  # type: ignore[arg-type]
        self._step()
        return answer

    def _counted_writing(self) -> object:
        self._step()
        return self._writing()


async def test_an_earlier_lease_hands_nothing_over_any_more(site: JobSite) -> None:
    await site.add_devices(5)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    earlier, put = site.work, site.work._calls.put
    sent = await earlier._executions.hand_over(await site.job(job.id), NOW, [FIRST], {}, [])
    await site.lead()
    await site.run(job.id)
    assert set(site.published.values()) == {1} and len(site.published) == 5
    with pytest.raises(Fenced):
        await earlier._put(job, sent)
    with pytest.raises(Fenced):
        await earlier._executions.hand_over(job, NOW, [FIRST], {}, [])
    with pytest.raises(Fenced):
        await JobFeed(site.database, 1).change(job, NOW, state="done")
    assert await site.waiting_calls() == [] and put is not None


async def test_what_redis_lost_is_unknown_and_not_sent_again(site: JobSite) -> None:
    await site.add_devices(6)
    job = await site.add_job(policy={**FAST, "window": 4, "halt_sample": 100})
    await site.prepare()
    await site.fill(job.id, 4)
    assert len(await site.waiting_calls()) == 4
    await site.store.ask(site.store.client.flushall())
    await site.store.load_functions()
    await site.connect([one.mac for one in await site.executions(job.id)])
    await site.lead()
    lost = await site.job(job.id)
    assert (lost.counts["unknown"], lost.counts["sent"]) == (4, 0)
    ended = await site.run(job.id)
    assert (ended.state, ended.counts["ok"], sum(site.published.values())) == ("done", 2, 2)


async def test_a_shard_without_an_owner_times_out_and_halts_the_job(site: JobSite) -> None:
    await site.add_devices(100)
    job = await site.add_job(policy={**FAST, "window": 20, "halt_sample": 20})
    await site.prepare()
    await site.fill(job.id, 20)
    async with site.database.writing() as connection:
        sent = JOB_EXECUTION.c.state == 2
        await connection.execute(update(JOB_EXECUTION).where(sent).values(place=1))
    await site.work.look()
    await site.step()
    halted = await site.job(job.id)
    assert (halted.state, halted.counts["timed_out"]) == ("halted", 20)


async def test_a_full_queue_gives_calls_back(site: JobSite) -> None:
    macs = await site.add_devices(2)
    queues = {site.store.keys.operator_calls(site.store.keys.shard(mac)) for mac in macs}
    for queue in queues:
        for _ in range(500):
            await site.store.ask(site.store.client.xadd(queue, {"m": "{}", "n": "9", "j": "1"}))
    job = await site.add_job(policy=FAST)
    await site.prepare()
    while (await site.job(job.id)).counts["waiting"] < 2:
        await site.step()
        await asyncio.sleep(0.01)
    for queue in queues:
        await site.store.ask(site.store.client.delete(queue))
    await _make_due(site)
    assert (await site.run(job.id)).state == "done"


async def test_a_tenant_whose_devices_share_a_shard_leaves_places_in_its_queue_for_others(site: JobSite) -> None:
    macs = [mac_number(mac) for mac in await site.add_devices(100) if site.store.keys.shard(mac) == 0]
    await _give_to_another_tenant(site, macs[-2:])
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).where(DEVICE.c.mac.in_(macs)).values(board="b"))
    site.work.places.most = site.work._calls.most_queued = 6
    greedy = [(await site.add_job(query="board=b", policy=FAST)).id for _ in range(2)]
    other = (await site.add_job(tenant=2, query="board=b", policy=FAST)).id
    await site.prepare()
    await site.fill(other, 2, tenant=2)
    await site.step()
    others = {mac_text(mac) for mac in macs[-2:]}
    calls = [call.device for _, _, call in await site.waiting_calls()]
    assert others < set(calls)
    assert len(calls) <= 5
    while [(await site.job(job)).state for job in greedy] != ["done"] * 2:
        await _make_due(site)
        await site.step()
        await site.answer()
        await asyncio.sleep(0.01)
    assert set(site.names.values()) == {1}, "no call twice"


async def test_a_place_that_nobody_gave_back_is_free_after_the_next_look(site: JobSite) -> None:
    await site.add_devices(1)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    site.work.places.take((job.id, FIRST + 7), 1, 0)
    free = site.work.places.room(1, 0)
    await site.work.look()
    assert site.work.places.room(1, 0) == free + 1


async def test_a_lease_that_takes_over_knows_who_has_places(site: JobSite) -> None:
    (mac,) = await site.add_devices(1)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    await site.fill(job.id, 1)
    work, shard = await site.lead(), site.store.keys.shard(mac)
    assert work.places.room(1, shard) == work.places.room(2, shard) - 1
    await site.run(job.id)
    assert work.places.room(1, shard) == work.places.room(2, shard)


async def test_a_tenant_with_many_jobs_lets_those_of_others_have_a_turn(site: JobSite) -> None:
    macs = [mac_number(mac) for mac in await site.add_devices(4)]
    await _give_to_another_tenant(site, macs[-2:])
    site.work.turns.seconds = 0.0
    greedy = [(await site.add_job(policy=FAST)).id for _ in range(6)]
    other = (await site.add_job(tenant=2, policy=FAST)).id
    await site.prepare()
    for _ in range(3):  # The rate of a job counts from its first turn on.
        await site.step()
        await asyncio.sleep(0.01)
    assert (await site.job(other, 2)).counts["sent"] == 2
    assert sum([(await site.job(job)).counts["sent"] > 0 for job in greedy]) <= 3


async def _give_to_another_tenant(site: JobSite, macs: Sequence[int]) -> None:
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="other", name="Other", created=0))
        await connection.execute(update(DEVICE).where(DEVICE.c.mac.in_(macs)).values(tenant=2))


async def test_counters_agree_with_the_rows(site: JobSite) -> None:
    dice = random.Random(3)
    await site.add_devices(120)
    policy = {"rate": 5_000, "window": 30, "halt_share": 1.0, "retries": 1, "retry_seconds": 1}
    job = await site.add_job(policy=policy)
    await site.prepare()
    choices: list[tuple[CallState, str]] = [
        ("ok", ""),
        ("error", ""),
        ("unknown", ""),
        ("not_sent", LATE),
        ("not_sent", OFFLINE),
    ]
    for _ in range(12):
        await site.step()
        await site.answer(lambda _: dice.choice(choices))
        await _make_due(site)
    async with site.database.reading() as connection:
        row = (await connection.execute(select(JOB).where(JOB.c.id == job.id))).one()
    rows = Counter(one.state for one in await site.executions(job.id))
    assert {name: count for name, count in (await site.job(job.id)).counts.items() if count} == rows
    assert row.stage_ok == rows["ok"]


async def test_a_redis_that_is_away_ends_the_work_and_it_begins_again(site: JobSite) -> None:
    from tests.support.memory_store import connection_of

    macs = await site.add_devices(20)
    job = await site.add_job(policy=FAST)
    await site.prepare()
    connection_of(site.store).fault = ConnectionError("away")
    with pytest.raises(Unavailable):
        await site.step()
    connection_of(site.store).fault = None
    await site.lead()
    assert (await site.run(job.id)).state == "done"
    assert site.published == Counter(macs)
