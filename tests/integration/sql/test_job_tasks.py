"""Kinds of jobs that are more than a call, on both kinds of database, with tasks that each test makes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import EventRows, NewEvent, StoredEvent
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.adapters.sql.job_rows import JobRow, JobRows
from fleet.core.job_kinds.calls import call_terms
from fleet.core.job_kinds.directory import TERMS
from fleet.core.job_kinds.terms import JobTerms
from fleet.core.query.conditions import Comparison
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_tasks.calls import CallTask
from fleet.roles.control.job_tasks.task import JobTask, OutcomeSource
from tests.support.job_site import JobSite
from tests.support.memory_store import memory_store

FAST = {"rate": 5_000, "window": 1_000}
REBOOT = {"kind": "reboot", "tool": "", "policy": FAST}
SEEN = replace(
    call_terms("self.reboot"), evidence=frozenset({"device.booted", "device.online"}), silence="no sign", recalled=True
)


class Seen(CallTask):
    """A restart that counts when the device has booted and then connected."""

    released: list[int]

    def judge(self, end: CallEnd, now: int) -> CallEnd:
        return replace(end, state="verifying", text="", due=now + 600_000) if end.state == "ok" else end

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        of = one.job, one.mac, one.attempt
        if event.kind == "device.booted":
            return CallEnd(*of, "verifying", "booted", one.place)
        return CallEnd(*of, "ok", "it came back") if one.text == "booted" else None

    async def release(self, ends: Sequence[CallEnd]) -> None:
        self.released += [one.mac for one in ends]

    async def recall(self, watched: Sequence[Watched]) -> Sequence[CallEnd]:
        return [CallEnd(one.job, one.mac, one.attempt, "waiting", "taken back", 0) for one in watched if not one.text]


@pytest.fixture
async def site(database: Database, monkeypatch: pytest.MonkeyPatch) -> JobSite:
    monkeypatch.setattr("fleet.adapters.sql.database.LOOK_SECONDS", 120.0)
    one = JobSite(database, await memory_store())
    await one.lead()
    return one


@pytest.fixture
def seen(site: JobSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the kind `reboot` wait for evidence; the list has the devices that were released."""
    monkeypatch.setitem(TERMS, "reboot", lambda _: SEEN)
    Seen.released = []
    _make(site)
    yield Seen.released


def _make(site: JobSite) -> None:
    site.work.tasks.makers["reboot"] = lambda job: Seen(job, site.work._calls)


async def tell(site: JobSite, kind: str, *macs: str) -> None:
    """Store events as the collector does."""
    at = milliseconds()
    events = [NewEvent(0, f"{at}-{number}", at, kind, mac, "{}") for number, mac in enumerate(macs)]
    await EventRows(site.database, site.fence).store(events, {})


async def until(site: JobSite, job: JobRow, **counts: int) -> JobRow:
    for _ in range(500):
        await site.step()
        await site.answer()
        found = await site.job(job.id)
        if all(found.counts[state] == count for state, count in counts.items()):  # type: ignore[index]
            return found
    raise AssertionError(found.counts)


async def test_an_execution_is_verifying_until_events_show_what_became_of_it(site: JobSite, seen: list[int]) -> None:
    macs = await site.add_devices(4)
    await tell(site, "device.booted", *macs)
    await tell(site, "device.online", *macs)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    found = await until(site, job, verifying=4)
    assert found.state == "running" and seen == [], "earlier events are no evidence"
    await tell(site, "device.online", *macs)
    await tell(site, "device.booted", *macs[:3])
    await tell(site, "device.online", *macs[:2])
    found = await until(site, job, ok=2)
    rows = {one.mac: (one.state, one.text) for one in await site.executions(job.id)}
    assert [rows[mac] for mac in macs] == [("ok", "it came back")] * 2 + [("verifying", "booted"), ("verifying", "")]
    await tell(site, "device.booted", *macs[2:])
    await tell(site, "device.online", *macs[2:])
    assert (await until(site, job, ok=4)).state in ("running", "done")
    assert len(seen) == len(set(seen)) == 4
    assert (await site.run(job.id)).state == "done"


async def test_evidence_survives_the_leader_and_is_used_once(site: JobSite, seen: list[int]) -> None:
    macs = await site.add_devices(2)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    await until(site, job, verifying=2)
    await tell(site, "device.booted", *macs)
    await site.step()
    await site.lead()
    _make(site)
    await tell(site, "device.online", *macs)
    found = await until(site, job, ok=2)
    assert (found.stage_ok, found.counts["verifying"], site.published) == (2, 0, dict.fromkeys(macs, 1))


async def test_an_outcome_that_comes_once_more_does_not_begin_the_wait_again(site: JobSite, seen: list[int]) -> None:
    (mac,) = await site.add_devices(1)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    await until(site, job, verifying=1)
    await tell(site, "device.booted", mac)
    await site.step()
    (row,) = await site.executions(job.id)
    found = await site.job(job.id)
    again = CallEnd(job.id, site_mac(row.mac), row.attempt, "verifying", "", 2**60)
    await site.work._outcomes.store([again], [found], milliseconds())
    (after,) = await site.executions(job.id)
    assert (after.text, after.place) == ("booted", row.place)


def site_mac(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


async def test_evidence_that_does_not_come_makes_it_unknown_and_counts_as_a_failure(
    site: JobSite, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.add_devices(30)
    job = await site.add_job(**{**REBOOT, "policy": {**FAST, "window": 20}})
    await site.prepare()
    found = await until(site, job, verifying=20)
    assert found.counts["queued"] == 10, "what is verified is in the window"
    later = milliseconds() + 601_000
    monkeypatch.setattr("fleet.roles.control.leader.job_work.milliseconds", lambda: later)
    halted = await until(site, job, unknown=20)
    assert {one.text for one in await site.executions(job.id, "unknown")} == {"no sign"}
    await site.step()
    halted = await site.job(job.id)
    assert (halted.state, halted.counts["queued"], len(seen)) == ("halted", 10, 20)


async def test_a_job_that_halts_or_is_stopped_takes_back_what_was_not_begun(site: JobSite, seen: list[int]) -> None:
    macs = await site.add_devices(3)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    await until(site, job, verifying=3)
    await tell(site, "device.booted", macs[0])
    await site.step()
    await JobRows(site.database, 1).change(job.id, state="halted")
    await site.step()
    halted = await site.job(job.id)
    assert (halted.counts["waiting"], halted.counts["verifying"]) == (2, 1)
    assert sorted(seen) == [site_mac(mac) for mac in macs[1:]]
    await JobRows(site.database, 1).change(job.id, state="stopping")
    await site.step()
    assert (await site.job(job.id)).counts["cancelled"] == 2
    await tell(site, "device.online", macs[0])
    assert (await until(site, job, ok=1)).counts["verifying"] == 0
    await site.step()
    assert (await site.job(job.id)).state == "stopped"


class Note(JobTask):
    """Writes names into a list, as the kind `agent` writes assignments."""

    def __init__(self, job: JobRow, written: list[int]) -> None:
        self.terms, self._written = TERMS["reboot"]({}), written

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        self._written += [one.mac for one in sent]
        return [CallEnd(one.job, one.mac, one.attempt, "ok") for one in sent]

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        return await self.start(sent)


async def test_what_control_writes_itself_is_ok_at_once_also_for_devices_that_are_away(
    site: JobSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    macs, written = await site.add_devices(5), list[int]()
    await site.connect(macs, online=False)
    monkeypatch.setitem(TERMS, "reboot", lambda _: JobTerms(connected=False))
    site.work.tasks.makers["reboot"] = lambda job: Note(job, written)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    assert (await site.run(job.id)).counts["ok"] == 5
    assert sorted(written) == [site_mac(mac) for mac in macs] and not site.published


async def test_what_a_killed_leader_may_not_have_written_is_written_again(
    site: JobSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[int]()
    macs = [site_mac(mac) for mac in await site.add_devices(3)]
    monkeypatch.setitem(TERMS, "reboot", lambda _: JobTerms(connected=False))
    job = await site.add_job(**REBOOT)
    await site.prepare()
    await site.work._executions.hand_over(await site.job(job.id), milliseconds(), macs, {}, [])
    site.work.tasks.makers["reboot"] = lambda job: Note(job, written)
    await site.work.begin()
    assert (sorted(written), (await site.job(job.id)).counts["ok"]) == (macs, 3)


class Courier(JobTask, OutcomeSource):
    """Work that travels another way."""

    terms = JobTerms()

    def __init__(self) -> None:
        self.taken: list[SentCall] = []
        self.given: list[CallEnd] = []

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        self.taken += sent
        return []

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        return []

    async def read(self, now: int) -> Sequence[CallEnd]:
        self.given = [CallEnd(one.job, one.mac, one.attempt, "ok", "heard") for one in self.taken]
        return self.given

    async def forget(self) -> None:
        self.taken = self.taken[len(self.given) :]


async def test_outcomes_may_arrive_another_way(site: JobSite, monkeypatch: pytest.MonkeyPatch) -> None:
    await site.add_devices(4)
    courier = Courier()
    monkeypatch.setitem(TERMS, "reboot", lambda _: courier.terms)
    site.work.tasks.makers["reboot"] = lambda _: courier
    site.work.tasks.sources += (courier,)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    assert (await site.run(job.id)).counts["ok"] == 4
    assert {one.text for one in await site.executions(job.id)} == {"heard"} and courier.taken == []


async def test_devices_that_meet_a_condition_of_the_kind_are_skipped(
    site: JobSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.add_devices(3, board="b1")
    terms = replace(call_terms("self.reboot"), skips={"it is another board": Comparison("board", "=", "b1")})
    monkeypatch.setitem(TERMS, "reboot", lambda _: terms)
    job = await site.add_job(**REBOOT)
    await site.prepare()
    assert (await site.run(job.id)).counts["skipped"] == 3
    assert {one.text for one in await site.executions(job.id)} == {"it is another board"}
