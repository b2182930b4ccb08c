"""What a change of agents was counted to do still holds when it is made, whatever others change meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.sql.job_targets import JobTargets, TargetCounts
from fleet.roles.control.agents import rule_changes
from tests.support.agent_site import MACS, AgentSite
from tests.support.control_server import FULL, ControlStage, empty_control
from tests.support.job_site import JobSite

ROOMS = f"mac={MACS[0]} OR mac={MACS[1]} OR mac={MACS[2]}"


@pytest.fixture
async def site(stage: ControlStage) -> AsyncIterator[AgentSite]:
    await JobSite(stage.database, stage.services.store).add_devices(6)
    yield AgentSite(stage)


@pytest.fixture
async def other(stage: ControlStage, tmp_path: Path) -> AsyncIterator[AgentSite]:
    """Another process of control with the same database."""
    async with empty_control(stage.database, stage.services.store, tmp_path) as running:
        yield AgentSite(running)


def after_counts(monkeypatch: pytest.MonkeyPatch, *works: Callable[[], Awaitable[Any]]) -> None:
    """Let somebody else do something after each of the next counts, before the change that was counted."""
    count, left = JobTargets.count_at_most, list(works)

    async def counted(targets: JobTargets) -> TargetCounts:
        found = await count(targets)
        if left:
            await left.pop(0)()
        return found

    monkeypatch.setattr(JobTargets, "count_at_most", counted)


async def test_a_group_gets_no_agent_for_members_that_came_while_they_were_counted(
    site: AgentSite, other: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, group = await site.agent("ann"), await site.group("g")
    join = f"POST /v1/groups/{group}/members:add"
    after_counts(monkeypatch, lambda: other.ask(join, macs=MACS, most=0))
    told = await site.assign(ann, 409, group=group, most=0)
    assert told["code"] == "more-devices" and "6 devices" in told["detail"]
    assert (await site.ask("GET /v1/assignments"))["items"] == []


async def test_a_group_gets_no_agent_for_a_query_that_came_while_it_was_counted(
    site: AgentSite, other: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, group = await site.agent("ann"), await site.group("g", query="tag.none=1")
    after_counts(monkeypatch, lambda: other.ask(f"PATCH /v1/groups/{group}", query=ROOMS, most=0))
    assert (await site.assign(ann, 409, group=group, most=2))["code"] == "more-devices"
    assert await site.assign(ann, group=group, most=3)


async def test_of_two_assignments_that_stand_for_each_other_only_one_is_taken_away(
    site: AgentSite, other: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, groups = await site.agent("ann"), [await site.group(name, *MACS) for name in "gh"]
    for group in groups:
        await site.assign(ann, group=group)
    take = "POST /v1/assignments:remove"
    after_counts(monkeypatch, lambda: other.ask(take, group=groups[1], most=0))
    assert (await site.ask(take, 409, group=groups[0], most=0))["code"] == "more-devices"
    given = (await site.ask("GET /v1/assignments"))["items"]
    assert [one["group"] for one in given] == groups[:1]


async def test_a_change_counts_again_after_others_that_do_not_concern_it(
    site: AgentSite, other: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = await site.agent("ann"), await site.agent("bob")
    group = await site.group("g", *MACS[:2])
    after_counts(monkeypatch, lambda: other.assign(bob, device=MACS[5]), lambda: other.assign(bob, device=MACS[4]))
    await site.assign(ann, group=group, most=2)
    assert len((await site.ask("GET /v1/assignments"))["items"]) == 3


async def test_a_change_ends_if_other_processes_never_stop(
    site: AgentSite, other: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, group, busy = await site.agent("ann"), await site.group("g", *MACS), await site.group("h")
    joins = [
        lambda mac=mac: other.ask(f"POST /v1/groups/{busy}/members:add", macs=[mac])
        for mac in MACS[: rule_changes.TRIES]
    ]
    after_counts(monkeypatch, *joins)
    assert (await site.assign(ann, 409, group=group))["code"] == "changed-meanwhile"
    await site.assign(ann, group=group)


async def test_changes_of_a_tenant_wait_for_each_other_in_one_process_but_not_for_ever(
    site: AgentSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_changes, "WAIT_SECONDS", 0.0)
    ann, group = await site.agent("ann"), await site.group("g")
    answers: list[Any] = []

    async def join() -> None:
        answers.append(await site.stage.ask(f"POST /v1/groups/{group}/members:add", FULL, json={"macs": MACS}))

    after_counts(monkeypatch, join)
    await site.assign(ann, group=group, most=0)
    assert [one.status_code for one in answers] == [503]
    await site.ask(f"POST /v1/groups/{group}/members:add", macs=MACS, most=6)


async def test_nothing_is_kept_of_a_tenant_whose_changes_are_made(site: AgentSite) -> None:
    ann, group = await site.agent("ann"), await site.group("g", *MACS[:2])
    await site.assign(ann, group=group)
    assert not site.stage.services.rules._turns


async def test_the_name_of_a_group_counts_where_the_query_of_another_group_names_it(site: AgentSite) -> None:
    ann, group, rest = await site.agent("ann"), await site.group("vip", *MACS[:4]), await site.group("x", *MACS)
    assert await site.preview_group(group) == (0, {})
    named = await site.group("others", query='mac:02:00:00:* NOT group="vip"')
    assert await site.preview_group(group) == (0, {}), "that group has no agent"
    await site.assign(ann, group=named)
    assert await site.preview_group(group) == (4, {})
    for verb, body in ((f"DELETE /v1/groups/{group}?most=3", {}), (f"PATCH /v1/groups/{group}", {"name": "v"})):
        told = await site.ask(verb, 409, **({**body, "most": 3} if body else {}))
        assert told["code"] == "more-devices" and "4 devices" in told["detail"]
    assert await site.preview_group(group, name="v") == (4, {}), "any of its members may get another agent"
    assert await site.preview_group(group, name="vip") == (0, {}), "it is its name"
    assert await site.preview_group(rest, name="y") == (0, {}) != await site.preview_group(rest, name="vip")
    found = await site.ask(f"POST /v1/groups/{group}:preview", name="v")
    assert await site.listed(found["query"]) == 4
    await site.ask(f"POST /v1/groups/{group}:preview", 422, name="v", add=MACS)
    told = await site.ask(f"PATCH /v1/groups/{rest}", 200, name="y", most=0)
    assert told["name"] == "y", "no query names it"
    await site.ask(f"PATCH /v1/groups/{group}", name="vip", notes="n", most=0)
    await site.ask(f"PATCH /v1/groups/{group}", name="v", most=4)
    assert (await site.ask(f"PATCH /v1/groups/{rest}", 409, name="vip", most=5))["code"] == "more-devices"
    await site.ask(f"DELETE /v1/groups/{group}?most=0", 204)
