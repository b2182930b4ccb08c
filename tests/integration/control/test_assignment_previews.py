"""What an assignment would change, is said before and bounds it, with both kinds of database."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import insert

from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import ASSIGNMENT, DEVICE
from fleet.client import agents
from fleet.client.client import AsyncFleetClient
from fleet.wire.control.agents import AssignmentTrial, NewAssignment
from fleet.wire.control.shapes import USUAL_MOST
from tests.support.agent_site import MACS, NEARER, OF_GROUP, OWN, SAME, AgentSite
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import JobSite


@pytest.fixture
async def site(stage: ControlStage) -> AsyncIterator[AgentSite]:
    await JobSite(stage.database, stage.services.store).add_devices(6)
    await DeviceRows(stage.database, 2).add([NewDevice("02:00:00:00:00:99")])
    yield AgentSite(stage)


async def test_who_keeps_an_agent_is_counted_by_the_reason(site: AgentSite) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    static = await site.group("static", *MACS[:3])
    saved = await site.group("saved", query=f"mac={MACS[2]} OR mac={MACS[3]}")
    assert await site.preview(ann, site=True) == (6, {})
    await site.assign(bob, device=MACS[0])
    await site.assign(bob, group=saved)
    assert await site.preview(ann, site=True) == (3, {OWN: 1, OF_GROUP: 2})
    assert await site.preview(ann, group=static) == (2, {OWN: 1}), "the older group goes before"
    assert await site.preview(ann, group=static, rank=-1) == (1, {OWN: 1, NEARER: 1})
    assert await site.preview(bob, group=static) == (1, {OWN: 1, SAME: 1})
    await site.assign(ann, site=True)
    assert await site.preview(ann, site=True) == (0, {OWN: 1, OF_GROUP: 2, SAME: 3})
    assert await site.preview(bob, device=MACS[0]) == (0, {SAME: 1})
    assert await site.preview(ann, device=MACS[0]) == (1, {})
    assert await site.preview(None, device=MACS[0]) == (1, {})
    assert await site.preview(None, group=saved) == (2, {})
    assert await site.preview(None, site=True) == (3, {OWN: 1, OF_GROUP: 2})
    await site.assign(ann, group=static)
    assert await site.preview(ann, group=static, rank=-5) == (1, {OWN: 1, SAME: 1}), "one falls to the other group"


async def test_a_preview_says_what_the_change_then_does(site: AgentSite) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    group = await site.group("g", *MACS[:4])
    await site.assign(bob, device=MACS[0])
    changing, _ = await site.preview(ann, group=group)
    assert (await site.assign(ann, group=group))["devices"] == changing == 3
    assert await site.preview(None, group=group) == (3, {OWN: 1})
    assert (await site.ask("POST /v1/assignments:remove", group=group))["devices"] == 3


async def test_revoked_devices_get_it_too_and_those_in_a_conversation_are_counted(site: AgentSite) -> None:
    ann, store = await site.agent("ann"), site.stage.services.store
    async with site.stage.database.writing() as connection:
        await connection.execute(DEVICE.update().where(DEVICE.c.mac == mac_number(MACS[1])).values(state="revoked"))
    for mac in MACS[4:]:
        await store.ask(store.client.hset(store.keys.session(mac), mapping={"id": "s", "edge": "e"}))
    found = await site.ask("POST /v1/assignments:preview", agent=ann, site=True)
    assert (found["changing"], found["online"], found["talking"]) == (6, 6, 2)
    await site.assign(ann, device=MACS[5])
    found = await site.ask("POST /v1/assignments:preview", agent=ann, site=True)
    assert (found["changing"], found["talking"]) == (5, 1), "the other one keeps its agent"


async def test_nothing_changes_if_more_devices_would_than_was_said(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:3])
    told = await site.assign(ann, 409, group=group, most=2)
    assert told["code"] == "more-devices" and "3 devices" in told["detail"]
    assert (await site.ask("GET /v1/assignments"))["items"] == []
    audit = await AuditRows(site.stage.database).page(1, AuditFilter(), None, 50)
    assert not [one for one in audit if one.action == "agent.assign"]
    assert (await site.assign(ann, group=group, most=3))["devices"] == 3
    await site.ask("POST /v1/assignments:remove", 409, group=group, most=2)
    await site.ask("POST /v1/assignments:remove", group=group, most=3)
    await site.assign(ann, 409, device=MACS[0], most=0)


async def test_without_a_word_about_their_number_few_devices_change(stage: ControlStage) -> None:
    site, jobs = AgentSite(stage), JobSite(stage.database, stage.services.store)
    macs = await jobs.add_devices(USUAL_MOST + 1)
    ann = await site.agent("ann")
    assert (await site.assign(ann, 409, site=True))["code"] == "more-devices"
    async with stage.database.writing() as connection:
        row = {"tenant": 1, "scope": "device", "ref": mac_number(macs[0]), "agent": ann, "rank": 0}
        await connection.execute(insert(ASSIGNMENT).values(row))
    await site.assign(ann, site=True)


async def test_what_is_another_tenants_is_not_there(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:3])
    theirs = (await site.ask("POST /v1/agents", 201, STRANGER, name="theirs"))["id"]
    verb = "POST /v1/assignments:preview"
    await site.ask(verb, 404, STRANGER, agent=ann, site=True)
    await site.ask(verb, 404, STRANGER, agent=theirs, group=group)
    await site.ask(verb, 404, STRANGER, agent=theirs, device=MACS[0])
    await site.ask(verb, 422, agent=ann)
    found = await site.ask(verb, 200, STRANGER, agent=theirs, site=True)
    assert (found["devices"], found["changing"]) == (1, 1)


async def test_an_agent_that_is_not_there_is_said_to_be_so_and_no_number(site: AgentSite) -> None:
    theirs = (await site.ask("POST /v1/agents", 201, STRANGER, name="theirs"))["id"]
    for agent in (theirs, 999):
        for body in ({"site": True}, {"device": MACS[0]}):
            await site.ask(f"POST /v1/agents/{agent}:assign", 404, **body, most=0)
    await site.ask("POST /v1/groups/999:preview", 404, add=MACS)
    await site.ask("DELETE /v1/groups/999?most=0", 404)


async def test_the_client_asks_for_it(site: AgentSite) -> None:
    ann = await site.agent("ann")
    async with AsyncFleetClient(str(site.stage.client.base_url), FULL) as client:
        found = await client.send(agents.preview(AssignmentTrial(agent=ann, site=True)))
        assert (found.changing, found.devices, found.talking) == (6, 6, 0)
        await client.send(agents.assign(ann, NewAssignment(site=True, most=found.changing)))
        assert (await client.send(agents.preview(AssignmentTrial(agent=ann, site=True)))).changing == 0
