"""The kind `rotate_credentials` on both kinds of database."""

import json

import pytest
from sqlalchemy import update

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import EventRows, NewEvent
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.job_schema import JOB_EXECUTION
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE
from fleet.roles.control.access import milliseconds
from tests.support.job_site import JobSite
from tests.support.memory_store import memory_store

ROTATION = {"kind": "rotate_credentials", "tool": "", "key": "k2", "policy": {"rate": 5_000, "window": 1_000}}


@pytest.fixture
async def site(database: Database) -> JobSite:
    one = JobSite(database, await memory_store())
    await one.lead()
    return one


async def connect(site: JobSite, key: str, *macs: str) -> None:
    """Tell that devices connected, as the collector does."""
    at, data = milliseconds(), json.dumps({"key": key} if key else {})
    events = [NewEvent(0, f"{at}-{number}", at, "device.online", mac, data) for number, mac in enumerate(macs)]
    await EventRows(site.database, site.fence).store(events, {})


async def until(site: JobSite, job: JobRow, **counts: int) -> JobRow:
    for _ in range(500):
        await site.step()
        await site.answer()
        found = await site.job(job.id)
        if all(found.counts[state] == count for state, count in counts.items()):  # type: ignore[index]
            return found
    raise AssertionError(found.counts)


async def texts(site: JobSite, job: JobRow) -> dict[str, str]:
    return {one.mac: f"{one.state}: {one.text}" for one in await site.executions(job.id)}


async def test_a_device_is_done_when_it_is_connected_with_the_key(site: JobSite) -> None:
    macs = await site.add_devices(4)
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).where(DEVICE.c.mac == mac_number(macs[3])).values(key="k2"))
    job = await site.add_job(**ROTATION)
    await site.prepare()
    found = await until(site, job, verifying=3)
    assert found.counts["skipped"] == 1
    await connect(site, "k1", *macs)
    await connect(site, "k2", macs[0])
    await connect(site, "", macs[1])
    await until(site, job, ok=2)
    assert await texts(site, job) == {
        macs[0]: "ok: connected with k2",
        macs[1]: "ok: connected again; the broker does not say with which key",
        macs[2]: "verifying: restarts",
        macs[3]: "skipped: the device has this key",
    }
    await connect(site, "k2", macs[2])
    await until(site, job, ok=3)
    assert (await site.run(job.id)).state == "done"
    assert site.published == dict.fromkeys(macs[:3], 1)


async def test_a_device_that_does_not_come_back_with_the_key_is_a_failure(site: JobSite) -> None:
    (mac,) = await site.add_devices(1)
    job = await site.add_job(**ROTATION)
    await site.prepare()
    await until(site, job, verifying=1)
    await connect(site, "k1", mac)
    async with site.database.writing() as connection:
        await connection.execute(update(JOB_EXECUTION).values(place=1))
    await until(site, job, unknown=1)
    assert await texts(site, job) == {mac: "unknown: the device did not connect with the new key"}


async def test_a_device_that_came_with_the_key_by_itself_is_not_restarted(site: JobSite) -> None:
    macs = await site.add_devices(2)
    users = {macs[0]: "device.k2.first.1", macs[1]: "device.k1.first.1"}
    for mac, user in users.items():
        await site.store.client.hset(site.store.keys.device(mac), mapping={"cu": user, "cep": "7", "ep": "7"})
    job = await site.add_job(**ROTATION)
    await site.prepare()
    await until(site, job, ok=1, verifying=1)
    assert site.published == {macs[1]: 1}
