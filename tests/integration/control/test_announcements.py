"""Announcements over the REST API and as a command, with both kinds of database."""

import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.redis.shards.operator_calls import CallState
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.client import announcements, jobs
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import milliseconds
from fleet.wire.announcements import TOOL
from fleet.wire.control.announcements import AnnouncementRequest
from fleet.wire.operator_calls import AWAKE_LATER, IN_SESSION, LATE, OFFLINE, OperatorCall
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import NOW, JobSite

TEXT = "Dinner is ready."


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def site(stage: ControlStage) -> JobSite:
    """The work of the leader beside the stage's control."""
    one = JobSite(stage.database, stage.services.store)
    await one.lead()
    return one


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


def asked(**fields: object) -> AnnouncementRequest:
    return AnnouncementRequest.model_validate({"text": TEXT, "query": "", "rate": 5_000, **fields})


async def refused(client: AsyncFleetClient, call: Call) -> str:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return f"{refusal.value.status} {refusal.value.code}"


async def test_every_device_is_told_once_and_the_receipts_say_how(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    macs = await site.add_devices(9)
    made = await client.send(announcements.create(asked(language="en")))
    assert (made.job.kind, made.job.state, made.receipts) == ("announce", "preparing", {})
    told: list[OperatorCall] = []

    def answer(call: OperatorCall) -> tuple[CallState, str]:
        told.append(call)
        return "ok", "notify: played" if call.device in macs[:5] else "alert: shown"

    await site.prepare()
    await site.run(made.job.id, answer)
    found = await client.send(announcements.read(made.job.id))
    assert (found.job.state, found.job.counts.ok) == ("done", 9)
    assert found.receipts == {"notify: played": 5, "alert: shown": 4}
    (said,) = {one.announcement for one in told}
    assert said is not None and (said.text, said.language, said.ways) == (TEXT, "en", ("speech", "notify", "alert"))
    assert {(one.tool, one.idle) for one in told} == {(TOOL, False)}
    audit = await AuditRows(stage.database).page(1, AuditFilter(), None, 10)
    (row,) = [one for one in audit if one.action == "announcement.create"]
    assert TEXT not in json.dumps(row.after) and row.after is not None and row.after["characters"] == len(TEXT)


async def test_one_device_is_told_and_only_that_of_the_own_tenant(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    macs = await site.add_devices(3)
    made = await client.send(announcements.create(asked(query=None, device=macs[1])))
    await site.prepare()
    await site.run(made.job.id)
    assert site.published == {macs[1]: 1}
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as stranger:
        assert await refused(stranger, announcements.create(asked(query=None, device=macs[1]))) == "404 not-found"
        assert await refused(stranger, announcements.read(made.job.id)) == "404 not-found"
    job = await client.send(jobs.create(_volume()))
    assert await refused(client, announcements.read(job.id)) == "404 not-found", "a job of another kind"


async def test_a_tenant_has_a_number_of_announcements_a_day(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = milliseconds()  # no midnight comes between
    monkeypatch.setattr("fleet.roles.control.routes.announcements.milliseconds", lambda: now)
    object.__setattr__(stage.services.settings, "announcements_daily", 2)
    for _ in range(2):
        await client.send(announcements.create(asked()))
    assert await refused(client, announcements.create(asked())) == "429 too-many-announcements"


async def test_what_cannot_be_announced_is_refused(client: AsyncFleetClient, stage: ControlStage) -> None:
    for wrong in (
        {"text": TEXT},
        {"text": TEXT, "query": "", "device": "02:00:00:00:00:01"},
        {"text": "", "query": ""},
        {"text": "\u200b", "query": ""},
        {"text": "😀", "query": "", "ways": ["speech", "alert"]},
        {"text": "x" * 501, "query": ""},
        {"text": TEXT, "query": "", "ways": []},
        {"text": TEXT, "query": "", "ways": ["radio"]},
        {"text": TEXT, "query": "", "quiet": "25:00-07:00"},
    ):
        answer = await stage.ask("POST /v1/announcements", json=wrong)
        assert answer.status_code == 422, wrong
        answer = await stage.ask("POST /v1/announcements:preview", json=wrong)
        assert answer.status_code == 422, wrong
    await client.send(announcements.create(asked(text="😀", ways=["alert"])))
    answer = await stage.ask("POST /v1/announcements", json={"text": TEXT, "query": "nofield=3"})
    assert answer.status_code == 400
    kind = {"name": "j", "query": "", "kind": "announce"}
    assert (await stage.ask("POST /v1/jobs", json=kind)).status_code == 422


async def test_one_that_waits_for_a_session_is_told_when_it_begins(site: JobSite, client: AsyncFleetClient) -> None:
    (mac,) = await site.add_devices(1)
    made = await client.send(announcements.create(asked(ways=["speech", "wake"])))
    await site.prepare()
    while not await site.answer(lambda _: ("not_sent", AWAKE_LATER)):
        await site.step()
    await site.step()
    (row,) = await site.executions(made.job.id)
    assert (row.state, row.text) == ("waiting", AWAKE_LATER)
    site.feeder.notice([StoredEvent(1, 1, NOW, "device.online", mac_number(mac), "{}")])
    await site.step()
    assert not await site.answer(), "a connection is no session"
    site.feeder.notice([StoredEvent(2, 1, NOW, "session.started", mac_number(mac), "{}")])
    ended = await site.run(made.job.id, lambda _: ("ok", "speech: spoken"))
    assert (ended.state, ended.counts["ok"]) == ("done", 1)


async def test_one_that_is_stopped_is_taken_back_where_it_was_handed_over(
    site: JobSite, client: AsyncFleetClient
) -> None:
    await site.add_devices(1)
    made = await client.send(announcements.create(asked(ways=["speech", "wake"])))
    await site.prepare()
    await site.fill(made.job.id, 1)
    ((_, _, call),) = await site.waiting_calls()
    assert not await site.queues.is_recalled(call.device, call.call)
    await client.send(jobs.steer(made.job.id, "stop"))
    assert await site.queues.is_recalled(call.device, call.call), "at once: the device may wake up now"
    ended = await site.run(made.job.id, lambda _: ("not_sent", "it was cancelled"))
    assert (ended.state, ended.counts["cancelled"]) == ("stopped", 1)


async def test_one_that_is_stopped_while_it_is_handed_over_is_taken_back(
    site: JobSite, client: AsyncFleetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.add_devices(1)
    made = await client.send(announcements.create(asked(ways=["speech", "wake"])))
    await site.prepare()
    put = JobCalls.put

    async def late(calls: JobCalls, sent: Sequence[OperatorCall], within_ms: int) -> list[OperatorCall]:
        await client.send(jobs.steer(made.job.id, "stop"))
        return await put(calls, sent, within_ms)

    monkeypatch.setattr(JobCalls, "put", late)
    while (await site.job(made.job.id)).state != "stopping":
        await site.step()
    ((_, _, call),) = await site.waiting_calls()
    assert await site.queues.is_recalled(call.device, call.call)


async def test_a_stop_without_redis_is_done_and_what_was_handed_over_is_taken_back_later(
    site: JobSite, client: AsyncFleetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.add_devices(1)
    made = await client.send(announcements.create(asked(ways=["speech", "wake"])))
    await site.prepare()
    await site.fill(made.job.id, 1)
    ((_, _, call),) = await site.waiting_calls()

    async def away(*_: object) -> None:
        raise Unavailable("Redis is away")

    with monkeypatch.context() as patched:
        patched.setattr(JobCalls, "recall", away)
        assert (await client.send(jobs.steer(made.job.id, "stop"))).state == "stopping"
    assert not await site.queues.is_recalled(call.device, call.call)
    await site.step()
    assert await site.queues.is_recalled(call.device, call.call)


async def test_one_that_fails_halts_as_other_jobs_do_unless_it_was_to_go_on(
    site: JobSite, client: AsyncFleetClient
) -> None:
    await site.add_devices(60)

    async def announce(**fields: object) -> JobRow:
        made = await client.send(announcements.create(asked(window=5, **fields)))
        await site.prepare()
        return await site.run(made.job.id, lambda call: ("unknown" if call.device[-1] in "05a" else "ok", "gone"))

    halted = await announce()
    assert (halted.state, halted.policy["halt_share"]) == ("halted", 0.1)
    assert halted.counts["queued"] >= 30, "a window and a sample of devices are told at most"
    assert (await announce(halt_share=0.5)).state == "done"


async def test_devices_that_are_away_or_busy_let_none_halt_and_are_told_later(
    site: JobSite, client: AsyncFleetClient
) -> None:
    macs = await site.add_devices(60)
    made = await client.send(announcements.create(asked()))
    await site.prepare()
    reasons = dict(zip(macs, itertools.cycle((OFFLINE, IN_SESSION, LATE)), strict=False))
    left = await site.run(made.job.id, lambda call: ("not_sent", reasons[call.device]))
    assert (left.state, left.counts["waiting"], left.counts["timed_out"]) == ("running", 60, 0)
    assert {one.mac: one.text for one in await site.executions(made.job.id)} == reasons


async def test_the_command_announces(site: JobSite, stage: ControlStage, fleet: CommandLine) -> None:
    macs = await site.add_devices(2)
    operator = Operator(fleet, stage)
    shown = await operator.row("announce", TEXT, "--device", macs[0], "--ways", "notify,alert", "--halt", "20%")
    assert shown["job"]["arguments"]["ways"] == ["notify", "alert"]
    assert shown["job"]["policy"]["halt_share"] == 0.2


def _volume() -> "jobs.JobRequest":
    return jobs.JobRequest.model_validate(
        {"name": "j", "query": "", "tool": "self.audio_speaker.set_volume", "arguments": {"volume": 4}}
    )
