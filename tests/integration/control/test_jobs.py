"""Jobs over the REST API and as commands, with both kinds of database."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select, update

from fleet.adapters.sql import job_removals
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION
from fleet.client import jobs
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS, SCOPES
from fleet.roles.control.access import milliseconds
from fleet.roles.control.leader import job_removal
from fleet.roles.control.leader.job_removal import JobRemoval
from fleet.wire.control.jobs import JobRequest
from fleet.wire.job_states import COMMAND
from fleet.wire.mcp import ToolSpec
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import JobSite

VOLUME = "self.audio_speaker.set_volume"
FAST = {"rate": 5_000, "window": 1_000}
LEVEL = {"type": "object", "properties": {"volume": {"type": "integer", "maximum": 100}}, "required": ["volume"]}


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


def asked(**fields: object) -> JobRequest:
    return JobRequest.model_validate(
        {"name": "j", "query": "", "tool": VOLUME, "arguments": {"volume": 4}, "policy": FAST, **fields}
    )


async def refused(client: AsyncFleetClient, call: Call) -> str:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return f"{refusal.value.status} {refusal.value.code}"


async def test_a_job_is_made_steered_and_read(site: JobSite, client: AsyncFleetClient, stage: ControlStage) -> None:
    macs = await site.add_devices(8)
    seen = await client.send(jobs.preview(asked()))
    assert (seen.devices, seen.online, seen.skipped) == (8, 8, [])
    made = await client.send(jobs.create(asked(policy={**FAST, "window": 2, "halt_share": 1.0})))
    assert (made.state, made.stage, made.devices) == ("preparing", 1, 0)
    assert await refused(client, jobs.steer(made.id, "pause")) == "409 other-state"
    await site.prepare()
    await site.fill(made.id, 2)
    assert (await client.send(jobs.steer(made.id, "pause"))).state == "paused"
    await site.answer(lambda _: ("error", "=no()"))
    await site.step()
    assert (await client.send(jobs.steer(made.id, "continue"))).state == "running"
    await site.run(made.id)
    ended = await client.send(jobs.read(made.id))
    assert (ended.state, ended.counts.ok, ended.counts.error) == ("done", 6, 2)
    failed = [one async for page in client.pages(jobs.executions(made.id, "error", 1)) for one in page.items]
    assert [one.text for one in failed] == ["=no()"] * 2
    pages = [[one.device for one in page.items] async for page in client.pages(jobs.executions(made.id, limit=3))]
    assert pages == [macs[:3], macs[3:6], macs[6:]]
    text = b"".join([piece async for piece in client.download(jobs.results(made.id), {})]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["device"] for row in rows] == macs
    assert {row["text"] for row in rows} == {"'=no()", "true"}, "no spreadsheet takes it for a formula"
    assert (await client.send(jobs.retry(made.id))).state == "running"
    assert (await site.run(made.id)).counts["ok"] == 8
    assert await refused(client, jobs.steer(made.id, "stop")) == "409 other-state"
    log = await AuditRows(stage.database).page(1, AuditFilter(object=f"job/{made.id}"), None, 20)
    assert [row.action for row in reversed(log)] == ["job.create", "job.pause", "job.continue", "job.retry"]
    assert [one.id async for page in client.pages(jobs.listing(1)) for one in page.items] == [made.id]


async def test_a_person_lets_the_next_stage_begin(site: JobSite, client: AsyncFleetClient) -> None:
    await site.add_devices(6)
    policy = {**FAST, "stages": [{"count": 2, "approve": True}, {"share": 1}]}
    made = await client.send(jobs.create(asked(policy=policy)))
    await site.prepare()
    while (await client.send(jobs.read(made.id))).reason != "approval":
        await site.step()
        await site.answer()
        await asyncio.sleep(0.01)
    assert len(site.published) == 2
    await client.send(jobs.steer(made.id, "approve"))
    assert (await site.run(made.id)).state == "done"
    assert len(site.published) == 6
    kinds = [one["kind"] for one in (await client_events(client))]
    assert kinds == ["job.running", "job.approval", "job.stage", "job.done"]
    assert await refused(client, jobs.steer(made.id, "approve")) == "409 other-state"


async def client_events(client: AsyncFleetClient) -> list[dict[str, object]]:
    body = b"".join([piece async for piece in client.download("/events", {"kinds": "job"})])
    return list(json.loads(body)["items"])


async def test_what_cannot_be_done_is_refused_before_anything_happens(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    (mac,) = await site.add_devices(1)
    for fields, expected in (
        ({"query": "online=maybe"}, "400 bad-filter"),
        ({"policy": {"stages": [{"query": "online=x"}, {"share": 1}]}}, "400 bad-filter"),
        ({"tool": "self.screen.preview_image", "arguments": {}}, "422 bad-arguments"),
    ):
        assert await refused(client, jobs.create(asked(**fields))) == expected, fields
    for body in (
        {"name": "x", "query": "", "kind": "reboot", "tool": VOLUME},
        {"name": "x", "query": "", "kind": "tool"},
        {"name": "x", "query": "", "tool": VOLUME, "policy": {"stages": [{"share": 0.5}]}},
        {"name": "x", "query": "", "tool": VOLUME, "policy": {"stages": [{"share": 1, "count": 1}]}},
        {"name": "x", "query": "", "tool": VOLUME, "policy": {"quiet": "22-7"}},
        {"name": "x", "tool": VOLUME},
    ):
        assert (await stage.ask("POST /v1/jobs", json=body)).status_code == 422, body
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as other:
        made = await client.send(jobs.create(asked()))
        assert await refused(other, jobs.read(made.id)) == "404 not-found"
        assert [one async for page in other.pages(jobs.listing()) for one in page.items] == []
    assert mac not in site.published


async def test_dangerous_jobs_need_their_scope_also_to_go_on(client: AsyncFleetClient, stage: ControlStage) -> None:
    reboot = JobRequest(name="r", query="", kind="reboot")
    made = await client.send(jobs.create(reboot))
    await stage.add_token("careful", *(set(SCOPES) - {DEVICES_DANGEROUS}))
    await stage.add_token("weak", *(set(SCOPES) - {DEVICES_COMMAND}))
    url = str(stage.client.base_url)
    async with AsyncFleetClient(url, "careful") as careful, AsyncFleetClient(url, "weak") as weak:
        assert await refused(careful, jobs.create(reboot)) == "403 scope-missing"
        for verb in ("continue", "approve"):
            assert await refused(careful, jobs.steer(made.id, verb)) == "403 scope-missing"  # type: ignore[arg-type]
        assert await refused(careful, jobs.retry(made.id)) == "403 scope-missing"
        assert await refused(weak, jobs.create(asked())) == "403 scope-missing"
        assert (await careful.send(jobs.create(asked(arguments={"volume": 1})))).state == "preparing"
        assert (await careful.send(jobs.steer(made.id, "stop"))).state == "stopping", "everybody may stop it"


async def test_a_job_begins_when_it_says_with_the_devices_of_that_time(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    now = datetime.now(UTC)
    made = await client.send(jobs.create(asked(starts=now + timedelta(hours=1))))
    assert made.state == "scheduled"
    assert made.starts is not None
    assert made.expires - made.starts == timedelta(days=7)
    await site.add_devices(3)
    await site.prepare()
    await site.step()
    assert (await client.send(jobs.read(made.id))).state == "scheduled"
    assert await refused(client, jobs.steer(made.id, "pause")) == "409 other-state"
    async with stage.database.writing() as connection:
        await connection.execute(update(JOB).values(starts=JOB.c.starts - 3_600_000))
    await site.prepare()
    assert (await site.run(made.id)).counts["ok"] == 3
    assert [one["kind"] for one in await client_events(client)] == ["job.running", "job.done"]
    assert await refused(client, jobs.create(asked(starts=now + timedelta(days=91)))) == "422 invalid"
    assert (await client.send(jobs.create(asked(starts=now - timedelta(hours=1))))).state == "preparing"
    given_up = await client.send(jobs.create(asked(starts=now + timedelta(hours=1))))
    await client.send(jobs.steer(given_up.id, "stop"))
    await site.step()
    assert (await client.send(jobs.read(given_up.id))).state == "stopped"


async def test_a_newer_job_with_the_same_key_stops_the_older_ones(site: JobSite, client: AsyncFleetClient) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    await site.add_devices(2)
    first, other, alone = [await client.send(jobs.create(asked(supersedes=key))) for key in ("a", "b", None)]
    planned = await client.send(jobs.create(asked(supersedes="a", starts=later)))
    assert (await client.send(jobs.read(first.id))).state == "preparing", "the planned one has not begun"
    newest = await client.send(jobs.create(asked(supersedes="a")))
    await site.prepare()
    while await site.step():
        pass
    states = {one.id: one.state for one in (await client.send(jobs.listing())).items}
    assert states == {
        **dict.fromkeys((first.id, planned.id), "stopped"),
        **dict.fromkeys((other.id, alone.id, newest.id), "running"),
    }
    assert (await client.send(jobs.read(first.id))).reason == f"superseded by job {newest.id}"


async def test_a_planned_job_stops_the_older_ones_when_it_begins(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    old = await client.send(jobs.create(asked(supersedes="a")))
    planned = await client.send(jobs.create(asked(supersedes="a", starts=later)))
    async with stage.database.writing() as connection:
        await connection.execute(update(JOB).where(JOB.c.id == planned.id).values(starts=1))
    await site.prepare()
    while await site.step():
        pass
    assert (await client.send(jobs.read(old.id))).state == "stopped"


async def test_a_change_of_another_version_is_refused(site: JobSite, client: AsyncFleetClient) -> None:
    await site.add_devices(4)
    policy = {**FAST, "stages": [{"count": 1, "approve": True}, {"count": 2, "approve": True}, {"share": 1}]}
    made = await client.send(jobs.create(asked(policy=policy)))
    await site.prepare()
    while (await client.send(jobs.read(made.id))).reason != "approval":
        await site.step()
        await site.answer()
        await asyncio.sleep(0.01)
    seen = await client.send(jobs.read(made.id))
    approve = jobs.steer(made.id, "approve").of_version(seen.version)
    await client.send(approve)
    assert await refused(client, approve) == "412 version-conflict", "a second person lets no second stage begin"
    for verb in ("pause", "continue", "stop"):
        assert await refused(client, jobs.steer(made.id, verb).of_version(1)) == "412 version-conflict"
    assert await refused(client, jobs.retry(made.id).of_version(1)) == "412 version-conflict"
    assert await refused(client, jobs.remove(made.id).of_version(1)) == "412 version-conflict"
    before = (await client.send(jobs.read(made.id))).version
    await site.step()
    assert (await client.send(jobs.read(made.id))).version == before + 1, "the next stage began"


async def test_a_job_that_is_over_is_deleted_slice_by_slice_and_its_number_not_given_again(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_removals, "AT_ONCE", 2)
    macs = await site.add_devices(5)
    made = await client.send(jobs.create(asked()))
    assert await refused(client, jobs.remove(made.id)) == "409 other-state"
    await site.prepare()
    await site.run(made.id)
    await client.send(jobs.remove(made.id))
    assert await refused(client, jobs.read(made.id)) == "404 not-found"
    assert await refused(client, jobs.retry(made.id)) == "404 not-found"
    assert (await client.send(jobs.listing())).items == []
    await JobRemoval(stage.database, 90).sweep(JobFeed(stage.database, site.fence), milliseconds())
    async with stage.database.reading() as connection:
        assert (await connection.execute(select(JOB_EXECUTION.c.mac))).all() == []
        assert (await connection.execute(select(JOB.c.id))).all() == []
    assert (await client_events(client))[-1]["kind"] == "job.deleted"
    assert (await client.send(jobs.create(asked()))).id == made.id + 1
    log = await AuditRows(stage.database).page(1, AuditFilter(object=f"job/{made.id}"), None, 20)
    assert [row.action for row in log] == ["job.delete", "job.create"]
    assert len(macs) == 5


async def test_old_jobs_and_those_beyond_the_bound_are_deleted(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.add_devices(1)
    made = [await client.send(jobs.create(asked())) for _ in range(4)]
    await site.prepare()
    for one in made[:3]:
        await site.run(one.id)
    async with stage.database.writing() as connection:
        await connection.execute(update(JOB).where(JOB.c.id == made[0].id).values(ended=1))
        await connection.execute(update(JOB).where(JOB.c.id == made[3].id).values(state="running", ended=None))
    removal, feed = JobRemoval(stage.database, 90), JobFeed(stage.database, site.fence)

    async def left() -> list[int]:
        await removal.sweep(feed, milliseconds())
        return [one.id for one in (await client.send(jobs.listing())).items]

    assert await left() == [one.id for one in reversed(made[1:])]
    monkeypatch.setattr(job_removal, "MOST_JOBS", 1)
    assert await left() == [made[3].id, made[2].id]
    async with stage.database.writing() as connection:
        command = dict((await connection.execute(select(JOB).where(JOB.c.id == made[2].id))).one()._mapping)
        rows = [{**command, "id": made[-1].id + number, "name": COMMAND} for number in (1, 2, 3)]
        await connection.execute(insert(JOB), rows)
    assert await left() == [made[-1].id + 3, made[3].id, made[2].id], "commands displace each other, and no job"


async def test_arguments_are_checked_against_the_tool_of_a_device(
    site: JobSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    (mac,) = await site.add_devices(1)
    store = stage.services.store
    owner = await site._owner(store.keys.shard(mac))
    from fleet.adapters.redis.devices.tools import ToolLists

    await ToolLists(store).register(owner, mac, "xiaozhi", (ToolSpec(name=VOLUME, input_schema=LEVEL),))
    assert await refused(client, jobs.create(asked(arguments={"volume": 400}))) == "422 bad-arguments"
    assert (await client.send(jobs.create(asked()))).state == "preparing"


async def test_jobs_are_run_from_the_command_line(fleet: CommandLine, site: JobSite, stage: ControlStage) -> None:
    operator = Operator(fleet, stage)
    macs = await site.add_devices(5)
    words = ("jobs", "create", "quiet", "volume=4", "--query", "", "--tool", VOLUME)
    assert "5 devices, 5 connected" in await operator.run(*words, "--dry-run")
    made = await operator.row(*words, "--stages", "2,100%", "--window", "2", "--rate", "1000", "--sample", "1")
    assert (made["state"], made["policy"]["stages"][0]["count"]) == ("preparing", 2)
    number = str(made["id"])
    await site.prepare()
    watching = asyncio.create_task(operator.run("jobs", "watch", number))
    await site.run(made["id"])
    assert "done, stage 2/2: 5 ok" in await watching
    assert "5 ok" in await operator.run("jobs", "list")
    assert macs[4] in await operator.run("jobs", "results", number)
    assert [row["state"] for row in await operator.rows("jobs", "results", number)] == ["ok"] * 5
    assert macs[0] in await operator.run("jobs", "show", number, "--state", "ok")
    assert "is stopping" in await operator.run("jobs", "stop", str((await operator.row(*words))["id"]))
    await operator.run("jobs", "pause", number, code=2)
    assert [row["id"] for row in await operator.rows("jobs", "delete", number)] == [made["id"]]
    planned = (*words, "--starts", "2026-01-01T00:00Z", "--supersedes", "volume")
    assert (await operator.row(*planned))["supersedes"] == "volume"
    await operator.run(*words, "--starts", "tomorrow", code=2)
    await operator.run("jobs", "create", "x", "--query", "", "--tool", VOLUME, "--stages", "some", code=2)
