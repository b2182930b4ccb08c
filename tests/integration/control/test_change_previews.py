"""What a change of a group or an agent would do, is said before and bounds it, with both kinds of database."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import insert

from fleet.adapters.sql import database, job_targets
from fleet.adapters.sql.agent_uses import BY_DEVICE, BY_GROUP, BY_SITE
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import ASSIGNMENT, IDEMPOTENCY
from fleet.client import agents, groups
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import SlowQuery
from fleet.roles.control.agents.compiler import AgentCompiler
from fleet.wire.control.groups import GroupTrial
from fleet.wire.control.shapes import USUAL_MOST
from tests.support.agent_site import MACS, NEARER, OWN, SAME, AgentSite
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import JobSite


@pytest.fixture
async def site(stage: ControlStage) -> AsyncIterator[AgentSite]:
    await JobSite(stage.database, stage.services.store).add_devices(6)
    await DeviceRows(stage.database, 2).add([NewDevice("02:00:00:00:00:99")])
    yield AgentSite(stage)


async def settle(site: AgentSite, tenant: int = 1) -> None:
    """Give devices their agents, as control does each half minute."""
    await AgentCompiler(site.stage.database, site.stage.services.store).settle(tenant)


async def test_who_joins_or_leaves_a_group_with_an_agent_is_counted_by_the_reason(site: AgentSite) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    group, other = await site.group("g", *MACS[:2]), await site.group("h", *MACS[4:])
    assert await site.preview_group(group, add=MACS) == (0, {}), "nobody's agent depends on it"
    await site.assign(ann, group=group, rank=1)
    assert await site.preview_group(group, add=MACS) == (4, {})
    assert await site.preview_group(group, remove=MACS) == (2, {})
    await site.assign(bob, device=MACS[1])
    await site.assign(bob, group=other, rank=5)
    assert await site.preview_group(group, add=MACS[:5]) == (2, {NEARER: 1})
    assert await site.preview_group(group, remove=MACS) == (1, {OWN: 1})
    await site.assign(ann, site=True)
    assert await site.preview_group(group, add=MACS[2:]) == (0, {NEARER: 2, SAME: 2})
    assert await site.preview_group(group) == (0, {OWN: 1, SAME: 1}), "it is deleted"


async def test_a_new_query_is_counted_by_who_joins_and_who_leaves(site: AgentSite) -> None:
    ann = await site.agent("ann")
    group = await site.group("g", query=f"mac={MACS[0]} OR mac={MACS[1]}")
    wanted = f"mac={MACS[1]} OR mac={MACS[2]} OR mac={MACS[3]}"
    assert await site.preview_group(group, query=wanted) == (0, {})
    await site.assign(ann, group=group)
    assert await site.preview_group(group, query=wanted) == (3, {}), "one stays a member"
    found = await site.ask(f"POST /v1/groups/{group}:preview", query=wanted)
    assert await site.listed(found["query"]) == 3
    row = await site.ask(f"GET /v1/groups/{group}")
    told = await site.ask(f"PATCH /v1/groups/{group}", 409, query=wanted, most=2)
    assert told["code"] == "more-devices" and "3 devices" in told["detail"]
    assert await site.ask(f"GET /v1/groups/{group}") == row
    assert (await site.ask(f"PATCH /v1/groups/{group}", query=wanted, most=3))["query"] == wanted
    await site.ask(f"PATCH /v1/groups/{group}", notes="n", most=0)
    assert (await site.ask(f"POST /v1/groups/{group}:preview", 409, query="agent=ann"))["code"] == "names-agent"
    assert (await site.ask(f"PATCH /v1/groups/{group}", 409, query="agent=ann"))["code"] == "names-agent"
    assert (await site.ask(f"POST /v1/groups/{group}:preview", 409, query=" "))["code"] == "other-kind"
    assert (await site.ask(f"POST /v1/groups/{group}:preview", 409, add=MACS))["code"] == "dynamic"
    await site.ask(f"POST /v1/groups/{group}:preview", 400, query="online AND")
    await site.ask(f"POST /v1/groups/{group}:preview", 422, query="online", add=MACS)


async def test_no_more_members_change_than_was_said(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", MACS[0])
    add, remove = f"POST /v1/groups/{group}/members:add", f"POST /v1/groups/{group}/members:remove"
    await site.ask(add, macs=MACS[1:2], most=0)
    await site.assign(ann, group=group)
    for verb, macs in ((add, MACS), (remove, MACS[:2])):
        assert (await site.ask(verb, 409, macs=macs, most=1))["code"] == "more-devices"
    assert (await site.ask(f"DELETE /v1/groups/{group}?most=1", 409))["code"] == "more-devices"
    audit = await AuditRows(site.stage.database).page(1, AuditFilter(), None, 50)
    assert [one.action for one in audit if one.action.startswith("group.")] == [
        "group.members.add", "group.members.add", "group.create"
    ]  # fmt: skip
    assert (await site.ask(add, macs=[*MACS, "02:00:00:00:00:99"], most=4))["unknown"] == ["02:00:00:00:00:99"]
    await settle(site)
    assert await site.listed("agent=ann") == 6
    assert (await site.ask(remove, macs=MACS[:2], most=2))["changed"] == 2
    await site.ask(f"DELETE /v1/groups/{group}?most=4", 204)
    await settle(site)
    assert await site.listed("agent=ann") == 0


async def test_an_agent_names_the_devices_that_have_it_and_their_list(site: AgentSite) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    path = f"POST /v1/agents/{ann}:preview"
    found = await site.ask(path, deleted=False)
    assert (found["changing"], found["given"], found["instead"]) == (0, [], [])
    group = await site.group("g", *MACS[:3])
    await site.assign(ann, group=group)
    await site.assign(ann, device=MACS[3])
    await site.assign(bob, device=MACS[0])
    found = await site.ask(path, deleted=False)
    assert (found["changing"], found["online"], found["counted"]) == (3, 3, True)
    assert found["given"] == [{"reason": BY_DEVICE, "devices": 1}, {"reason": BY_GROUP, "devices": 2}]
    assert found["instead"] == [] and await site.listed(found["query"]) == 3
    await site.assign(ann, site=True)
    found = await site.ask(path, deleted=True)
    assert (found["changing"], await site.listed(found["query"])) == (5, 5)
    assert {one["reason"]: one["devices"] for one in found["given"]} == {BY_DEVICE: 1, BY_GROUP: 2, BY_SITE: 2}
    assert found["instead"] == [{"agent": "", "devices": 5}]


async def test_what_devices_get_in_place_of_a_deleted_agent_is_what_they_then_have(site: AgentSite) -> None:
    ann, bob, cid = [await site.agent(name) for name in ("ann", "bob", "cid")]
    await site.assign(bob, site=True)
    await site.assign(cid, group=await site.group("low", MACS[0]))
    await site.assign(ann, group=await site.group("high", *MACS[:3]), rank=5)
    await site.assign(ann, device=MACS[0])
    found = await site.ask(f"POST /v1/agents/{ann}:preview", deleted=True)
    assert found["instead"] == [{"agent": "bob", "devices": 2}, {"agent": "cid", "devices": 1}]
    assert (await site.ask(f"DELETE /v1/agents/{ann}?most=2", 409))["code"] == "more-devices"
    await site.ask(f"DELETE /v1/agents/{ann}?most=3", 204)
    assert await site.listed("agent=cid") == 1


async def test_devices_that_are_still_being_given_their_agent_are_counted(site: AgentSite) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    group, other = await site.group("g", *MACS[:2]), await site.group("h")
    await site.assign(ann, group=group)
    await site.assign(bob, group=other, rank=5)
    await site.ask(f"POST /v1/groups/{group}/members:add", macs=MACS[2:5])
    await site.ask(f"POST /v1/groups/{other}/members:add", macs=MACS[:1])
    path = f"POST /v1/agents/{ann}:preview"
    found = await site.ask(path, deleted=True)
    assert (found["changing"], found["late"], await site.listed(found["query"])) == (4, 4, 2)
    assert found["given"] == [{"reason": BY_GROUP, "devices": 4}]
    assert found["instead"] == [{"agent": "", "devices": 4}]
    assert (await site.ask(f"POST /v1/agents/{ann}:publish?most=3", 409))["code"] == "more-devices"
    assert (await site.ask(f"DELETE /v1/agents/{ann}?most=3", 409))["code"] == "more-devices"
    await settle(site)
    found = await site.ask(path, deleted=True)
    assert (found["changing"], found["late"], await site.listed(found["query"])) == (4, 0, 4)
    # That of the site: who has no other agent gets it at once, and whoever loses another one later.
    await site.assign(bob, site=True)
    await site.ask(f"POST /v1/groups/{group}/members:remove", macs=MACS[3:5])
    found = await site.ask(f"POST /v1/agents/{bob}:preview", deleted=True)
    assert (found["changing"], found["late"], await site.listed(found["query"])) == (4, 2, 2)
    assert {one["reason"]: one["devices"] for one in found["given"]} == {BY_GROUP: 1, BY_SITE: 3}
    assert found["instead"] == [{"agent": "", "devices": 3}, {"agent": "ann", "devices": 1}]


async def test_the_slow_query_of_a_group_with_another_agent_bounds_no_count(
    site: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    await site.assign(ann, group=await site.group("g", *MACS[:2]))
    await site.assign(ann, device=MACS[2])
    await site.assign(bob, group=await site.group("h", query="online"))
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    found = await site.ask(f"POST /v1/agents/{ann}:preview", deleted=True)
    assert (found["changing"], found["counted"], found["late"]) == (3, False, 0)
    found = await site.ask(f"POST /v1/agents/{bob}:preview", deleted=True)
    assert (found["changing"], found["counted"]) == (6, False)


async def test_of_another_tenant_the_agent_of_the_site_is_that_of_its_devices(site: AgentSite) -> None:
    theirs = (await site.ask("POST /v1/agents", 201, STRANGER, name="theirs"))["id"]
    await site.ask(f"POST /v1/agents/{theirs}:assign", token=STRANGER, site=True)
    found = await site.ask(f"POST /v1/agents/{theirs}:preview", token=STRANGER, deleted=True)
    assert (found["changing"], found["query"]) == (1, 'agent="theirs"')
    assert found["given"] == [{"reason": BY_SITE, "devices": 1}]
    assert found["instead"] == [{"agent": "", "devices": 1}]
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:3])
    await site.ask(f"POST /v1/agents/{ann}:preview", 404, STRANGER, deleted=False)
    await site.ask(f"POST /v1/groups/{group}:preview", 404, STRANGER, query=None)
    await site.assign(ann, group=group)
    await site.ask(f"DELETE /v1/agents/{ann}?most=0", 404, STRANGER)


async def test_a_version_counts_for_any_number_of_devices_unless_one_was_named(stage: ControlStage) -> None:
    site, jobs = AgentSite(stage), JobSite(stage.database, stage.services.store)
    macs = await jobs.add_devices(USUAL_MOST + 1)
    ann = await site.agent("ann")
    async with stage.database.writing() as connection:
        row = {"tenant": 1, "scope": "device", "agent": ann, "rank": 0}
        await connection.execute(insert(ASSIGNMENT), [{**row, "ref": mac_number(mac)} for mac in macs])
    await settle(site)
    publish, rollback = f"POST /v1/agents/{ann}:publish", f"POST /v1/agents/{ann}:rollback"
    told = await site.ask(f"{publish}?most=100", 409)
    assert told["code"] == "more-devices" and "101 devices have this agent" in told["detail"]
    assert (await site.ask(publish))["number"] == 1
    assert (await site.ask(f"{publish}?most=101"))["number"] == 2
    assert (await site.ask(rollback, 409, number=1, most=100))["code"] == "more-devices"
    assert (await site.ask(rollback, number=1))["number"] == 1
    assert (await site.ask(f"DELETE /v1/agents/{ann}", 409))["code"] == "more-devices"
    assert (await site.ask(f"GET /v1/agents/{ann}"))["live"] == 1


async def test_a_count_that_takes_too_long_is_said_and_the_most_that_it_can_be_may_be_named(
    site: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await site.agent("ann")
    group, saved = await site.group("g", *MACS[:2]), await site.group("h", query="online")
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    found = await site.ask("POST /v1/assignments:preview", agent=ann, group=group)
    assert (found["counted"], found["changing"], found["skipped"], found["query"]) == (False, 2, [], "")
    found = await site.ask("POST /v1/assignments:preview", agent=ann, site=True)
    assert (found["counted"], found["changing"], found["online"]) == (False, 6, 6), "no other tenant's"
    told = await site.assign(ann, 409, group=group, most=1)
    assert told["code"] == "more-devices" and "at most 2 devices" in told["detail"]
    await site.assign(ann, group=group, most=2)
    bound = job_targets.JobTargets._bound
    limits = []

    async def slow(targets: job_targets.JobTargets, condition: object) -> job_targets.TargetCounts:
        limits.append(condition)
        if len(limits) % 2:
            raise SlowQuery("the condition is slow, too")
        return await bound(targets, condition)  # type: ignore[arg-type]

    monkeypatch.setattr(job_targets.JobTargets, "_bound", slow)
    assert "at most 6 devices" in (await site.assign(ann, 409, group=saved, most=5))["detail"]
    await site.assign(ann, group=saved, most=6)
    assert (await site.ask(f"POST /v1/groups/{group}:preview", add=MACS))["counted"] is False
    found = await site.ask(f"POST /v1/agents/{ann}:preview", deleted=True)
    assert (found["changing"], found["counted"], found["given"], found["instead"]) == (6, False, [], [])


async def test_a_preview_with_a_key_runs_again_and_its_answer_is_not_kept(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:2])
    changes = (
        (f"agents/{ann}", {"deleted": True}),
        (f"groups/{group}", {"add": MACS}),
        ("assignments", {"site": True}),
    )
    for path, body in changes:
        for _ in range(2):
            answer = await site.stage.ask(f"POST /v1/{path}:preview", json=body, headers={"Idempotency-Key": path})
            assert answer.status_code == 200 and "Idempotency-Replayed" not in answer.headers
    async with site.stage.database.reading() as connection:
        assert (await connection.execute(IDEMPOTENCY.select())).all() == []


async def test_the_client_asks_for_it(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:3])
    await site.assign(ann, group=group)
    async with AsyncFleetClient(str(site.stage.client.base_url), FULL) as client:
        assert (await client.send(agents.preview_change(ann, deleted=True))).changing == 3
        assert (await client.send(groups.preview(group, GroupTrial(remove=MACS[:2])))).changing == 2
        assert (await client.send(groups.preview(group, GroupTrial()))).changing == 3
        await client.send(groups.remove_members(group, MACS[:2], most=2))
        await client.send(agents.publish(ann, most=3))
        await client.send(agents.roll_back(ann, 1, most=3))
        await client.send(groups.remove(group, most=1))
        await client.send(agents.remove(ann, most=3))


async def test_a_misspelt_bound_is_refused(site: AgentSite) -> None:
    ann = await site.agent("ann")
    await site.assign(ann, site=True)
    await settle(site)
    publish = f"POST /v1/agents/{ann}:publish"
    for query in ("Most=0", "mots=0", "most%20=0", "max=0", "most[]=0"):
        told = await site.ask(f"{publish}?{query}", 422)
        assert told["errors"][0]["message"] == "is not known", query
    assert (await site.ask(f"{publish}?most=0", 409))["code"] == "more-devices"
    for verb in (f"DELETE /v1/agents/{ann}?moost=7", "POST /v1/devices:import?dry-run=true", "POST /v1/groups?a=b"):
        await site.ask(verb, 422)
    assert "none is expected" in (await site.ask(publish, 422, most=0))["detail"]
    for body in (b"", b" {}\n", b"null"):
        assert (await site.stage.ask(publish, content=body)).status_code == 200, body
    assert await site.ask("GET /v1/agents?unknown=1")
    await site.ask(f"{publish}?most=6")
