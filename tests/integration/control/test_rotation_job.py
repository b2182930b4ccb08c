"""`fleet keys rotate` where control is known: it makes a job, and follows it."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import update

from fleet.adapters.sql.event_rows import EventRows, NewEvent
from fleet.adapters.sql.job_rows import JobRow, JobRows
from fleet.adapters.sql.schema import DEVICE
from fleet.client.client import AsyncFleetClient
from fleet.operations.rotation_job import RotationJob
from fleet.roles.control.access import milliseconds
from tests.support.control_server import FULL, ControlStage
from tests.support.job_site import JobSite

POLICY = {"rate": 5_000, "window": 50}


@pytest.fixture
async def site(stage: ControlStage) -> JobSite:
    one = JobSite(stage.database, stage.services.store)
    await one.lead()
    return one


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


async def newest(site: JobSite) -> JobRow | None:
    return next(iter(await JobRows(site.database, 1).page(None, 1)), None)


async def work(site: JobSite, following: "asyncio.Task[None]", macs: list[str]) -> None:
    """Do control's work, and let restarted devices come back with the new key, until the command has followed it."""
    while not following.done():
        await site.prepare()
        await site.step()
        await site.answer()
        job = await newest(site)
        if job is not None and job.counts["verifying"] == len(macs):
            at = milliseconds()
            data = json.dumps({"key": "k2"})
            events = [NewEvent(0, f"{at}-{n}", at, "device.online", mac, data) for n, mac in enumerate(macs)]
            await EventRows(site.database, site.fence).store(events, {})
        await asyncio.sleep(0.01)
    await following


async def test_all_devices_are_moved_and_a_newer_job_stops_the_older_one(
    site: JobSite, client: AsyncFleetClient
) -> None:
    macs = await site.add_devices(3)
    for number in (1, 2):
        rotation = RotationJob(client, POLICY, 600, show=False)
        await work(site, asyncio.create_task(rotation.run("k2")), macs)
        job = await newest(site)
        assert job is not None
        assert (job.id, job.state, job.kind, job.supersedes) == (number, "done", "rotate_credentials", job.kind)
    assert job.counts["ok"] == 3


async def test_the_command_does_not_wait_for_devices_that_are_away(site: JobSite, client: AsyncFleetClient) -> None:
    (mac,) = await site.add_devices(1)
    await site.connect([mac], online=False)
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).values(online=False))
    await work(site, asyncio.create_task(RotationJob(client, POLICY, 600, show=False).run("k2")), [])
    job = await newest(site)
    assert job is not None
    assert (job.state, job.counts["waiting"]) == ("running", 1), "it goes on when the device comes"
