"""Jobs that change desired states, and jobs that give agents, on both kinds of database."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_executions import SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import AGENT, DEVICE, LISTED_TOOL, TENANT, TOOL_LIST
from fleet.core.desired_state import STATUS
from fleet.roles.control.job_tasks.shadow import WRITTEN, ShadowTask
from tests.support.memory_store import memory_store
from tests.support.state_site import ALL_TOOLS, TOOLS_OF, StateSite

VOLUME, THEME = TOOLS_OF["volume"], TOOLS_OF["theme"]
LAMP = "self.lamp.turn_on"
FAST = {"rate": 5_000, "window": 1_000, "halt_share": 1.0}


@pytest.fixture
async def site(database: Database) -> StateSite:
    one = StateSite(database, await memory_store())
    await one.lead()
    one.states = await one.keeper.begin(one.fence)
    return one


async def job_of(site: StateSite, **fields: Any) -> JobRow:
    job = await site.add_job(tool="", **{"policy": FAST, **fields})
    await site.prepare()
    return job


async def finish(site: StateSite, job: int) -> JobRow:
    """Work on jobs and on desired states until a job does not run any more."""
    for _ in range(3_000):
        await site.step()
        await site.keeper.step(site.states)
        await site.answer(lambda call: site.stubs[call.device].answer(call))
        found = await site.job(job)
        if found.state not in ("running", "stopping"):
            return found
        await asyncio.sleep(0.005)
    raise AssertionError(await site.job(job))


async def test_devices_that_confirm_are_ok_and_others_are_not(site: StateSite) -> None:
    macs = await site.add_stubs(5)
    site.stubs[macs[1]].answers[THEME] = ("ok", "false")
    site.stubs[macs[2]].answers[VOLUME] = ("ok", "true")
    site.stubs[macs[3]].values = {"volume": 40, "theme": "dark"}
    job = await job_of(site, kind="shadow", shadow={"desired": {"volume": 40, "theme": "dark"}})
    ended = await finish(site, job.id)
    rows = {one.mac: (one.state, one.text) for one in await site.executions(job.id)}
    assert rows == {
        macs[0]: ("ok", "confirmed"),
        macs[1]: ("error", "theme: the device does not take this value"),
        macs[2]: ("error", "volume: the device reports 70"),
        macs[3]: ("ok", "confirmed"),
        macs[4]: ("ok", "confirmed"),
    }
    assert (ended.state, ended.counts["verifying"]) == ("done", 0)
    again = await job_of(site, kind="shadow", query=f"mac={macs[0]}", shadow={"desired": {"volume": 40}})
    assert (await finish(site, again.id)).counts["ok"] == 1
    assert site.stubs[macs[0]].asked[VOLUME] == 1, "it was so already"


async def test_a_canary_that_does_not_confirm_halts_the_job(site: StateSite) -> None:
    macs = await site.add_stubs(30)
    for mac in macs:
        site.stubs[mac].answers[VOLUME] = ("error", "no")
    policy = {**FAST, "window": 3, "halt_share": 0.1, "halt_sample": 4, "stages": [{"count": 10}, {"share": 1}]}
    job = await job_of(site, kind="shadow", policy=policy, shadow={"desired": {"volume": 40}})
    halted = await finish(site, job.id)
    assert (halted.state, halted.stage) == ("halted", 0)
    touched = [mac for mac in macs if (await site.state(mac)).version]
    assert len(touched) <= 3 + 4


async def test_what_cannot_be_read_back_is_ok_when_it_is_written_and_set_once(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    job = await job_of(site, kind="shadow", shadow={"desired": {"tools": {LAMP: {"level": 2}}}})
    await finish(site, job.id)
    (row,) = await site.executions(job.id)
    assert (row.state, row.text) == ("ok", WRITTEN)
    await site.settle()
    task = ShadowTask(await site.job(job.id), site.database)
    (end,) = await task.start([SentCall(job.id, mac_number(mac), row.attempt, 0)])
    assert end.state == "ok", "killed before its outcome was written, the next leader begins it again"
    await site.settle()
    assert site.stubs[mac].asked[LAMP] == 1
    later = await job_of(site, kind="shadow", shadow={"desired": {"tools": {LAMP: {"level": 2}}}})
    await finish(site, later.id)
    await site.settle()
    assert site.stubs[mac].asked[LAMP] == 2, "another job names it again"


async def test_devices_that_lack_a_tool_are_skipped(site: StateSite) -> None:
    macs = await site.add_stubs(2)
    async with site.database.writing() as connection:
        number = (await connection.execute(insert(TOOL_LIST).values(digest="d").returning(TOOL_LIST.c.id))).scalar_one()
        await connection.execute(insert(LISTED_TOOL), [{"tool": one, "list": number} for one in (STATUS, VOLUME)])
        await connection.execute(update(DEVICE).where(DEVICE.c.mac == mac_number(macs[1])).values(tool_list=number))
    job = await job_of(site, kind="shadow", shadow={"desired": {"theme": "dark"}})
    await finish(site, job.id)
    rows = {one.mac: (one.state, one.text) for one in await site.executions(job.id)}
    assert rows == {macs[0]: ("ok", "confirmed"), macs[1]: ("skipped", f"it has no tool {THEME}")}
    assert (await site.state(macs[1])).version == 0 and set(ALL_TOOLS) >= set(site.stubs[macs[0]].asked)


async def test_an_agent_is_given_to_each_device_connected_or_not(site: StateSite) -> None:
    macs = await site.add_stubs(3)
    await site.connect(macs[2:], online=False)
    agent = (await AgentRows(site.database, 1).add("a", "", {}, 1)).id
    job = await job_of(site, kind="agent", agent=agent)
    ended = await finish(site, job.id)
    assert (ended.state, ended.counts["ok"]) == ("done", 3)
    for mac in macs:
        given = await AssignmentRows(site.database, 1).read("device", mac_number(mac))
        assert given is not None and given.agent == agent
        assert await site.store.client.hget(admission_key(site.store, mac), "agent") == str(agent)


async def test_an_agent_that_is_gone_or_of_another_tenant_is_an_error(site: StateSite) -> None:
    await site.add_stubs(2)
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="other", name="", created=0))
    gone = (await AgentRows(site.database, 1).add("a", "", {}, 1)).id
    theirs = (await AgentRows(site.database, 2).add("b", "", {}, 1)).id
    async with site.database.writing() as connection:
        await connection.execute(delete(AGENT).where(AGENT.c.id == gone))
    for agent in (gone, theirs):
        ended = await finish(site, (await job_of(site, kind="agent", agent=agent)).id)
        assert (ended.counts["error"], ended.counts["ok"]) == (2, 0)
    async with site.database.reading() as connection:
        assert set((await connection.execute(select(DEVICE.c.agent))).scalars()) == {""}
