"""Desired states over the REST API and as commands, with both kinds of database."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.client import desired
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.permissions import AGENTS_READ, AGENTS_WRITE, DEVICES_COMMAND, DEVICES_DANGEROUS, DEVICES_READ, SCOPES
from fleet.wire.control.desired import DesiredPatch
from fleet.wire.mcp import ToolSpec
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import FIRST
from tests.support.state_site import StateSite

LAMP = "self.lamp.turn_on"
MAC = mac_text(FIRST)


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def site(stage: ControlStage) -> StateSite:
    """The work of the leader beside the stage's control."""
    one = StateSite(stage.database, stage.services.store)
    await one.take_over()
    return one


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


def patch(**values: object) -> DesiredPatch:
    return DesiredPatch.model_validate({"desired": values})


async def refused(client: AsyncFleetClient, call: Call) -> str:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return f"{refusal.value.status} {refusal.value.code}"


async def test_it_is_changed_read_and_confirmed(site: StateSite, client: AsyncFleetClient) -> None:
    await site.add_stubs(1)
    empty = await client.send(desired.read(MAC))
    assert (empty.version, empty.desired, empty.properties, empty.reported_at) == (0, {}, [], None)
    wanted = {"volume": 40, "timezone": "Europe/Berlin", "tools": {LAMP: {"level": 2}}}
    body = DesiredPatch.model_validate({"desired": wanted, "policies": {"volume": "enforce"}})
    made = await client.send(desired.change(MAC, body))
    assert (made.version, made.desired, made.policies) == (1, wanted, {"volume": "enforce"})
    await site.settle()
    found = await client.send(desired.read(MAC))
    assert {one.name: one.state for one in found.properties} == {
        "volume": "confirmed",
        "timezone": "confirmed",
        f"tools.{LAMP}": "sent",
    }
    assert found.reported == {"volume": 40, "timezone": "Europe/Berlin"} and found.reported_at is not None
    again = await client.send(desired.change(MAC, patch(volume=None, tools={LAMP: None})))
    assert again.desired == {"timezone": "Europe/Berlin"}
    row, *_ = await AuditRows(site.database).page(1, AuditFilter(), None, 10)
    assert (row.action, row.object) == ("device.desire", f"device/{MAC}")
    assert row.before == {"desired": wanted, "policies": {"volume": "enforce"}}


async def test_of_two_writers_the_second_is_told(
    site: StateSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    await site.add_stubs(1)
    first = await stage.ask(f"GET /v1/devices/{MAC}/desired")
    assert first.headers["etag"] == '"0"'
    one, other = (desired.change(MAC, patch(volume=level)).of_version(0) for level in (40, 50))
    assert (await client.send(one)).version == 1
    assert await refused(client, other) == "412 version-conflict"
    assert (await client.send(desired.read(MAC))).desired == {"volume": 40}
    assert (await client.send(desired.change(MAC, patch(volume=50)).of_version(1))).version == 2


async def test_what_does_not_fit_is_refused(site: StateSite, client: AsyncFleetClient, stage: ControlStage) -> None:
    await site.add_stubs(1)
    schema = {"type": "object", "properties": {"level": {"type": "integer", "maximum": 9}}, "required": ["level"]}
    owner = await site._owner(site.store.keys.shard(MAC))
    await ToolLists(site.store).register(owner, MAC, "xiaozhi", (ToolSpec(name=LAMP, input_schema=schema),))
    bodies: list[dict[str, Any]] = [
        {"desired": {"volume": 101}},
        {"desired": {"pitch": 1}},
        {"desired": {"timezone": "Mars/North"}},
        {"desired": {"language": "German"}},
        {"desired": {"tools": {"a b": {}}}},
        {"desired": {"tools": {LAMP: {"x": "y" * 3_000}}}},
        {"desired": {"tools": {LAMP: {"level": 10}}}},
        {"desired": {"tools": {"self.audio_speaker.set_volume": {"volume": 4}}}},
        {"desired": {"tools": {"self.reboot": {}}}},
        {"desired": {"tools": {"self.get_device_status": {}}}},
        {"policies": {"volume": "always"}},
        {"policies": {f"tools.{LAMP}": "enforce"}},
    ]
    for body in bodies:
        found = await stage.ask(f"PATCH /v1/devices/{MAC}/desired", json=body)
        assert found.status_code == 422, (body, found.text)
    for number in range(16):
        await client.send(desired.change(MAC, patch(tools={f"self.lamp.t{number}": {}})))
    assert await refused(client, desired.change(MAC, patch(tools={LAMP: {"level": 1}}))) == "409 too-many"


async def test_dangerous_tools_and_agents_need_scopes_of_their_own(site: StateSite, stage: ControlStage) -> None:
    await site.add_stubs(1)
    await stage.add_token("flt_some", DEVICES_READ, DEVICES_COMMAND)
    await stage.add_token("flt_more", DEVICES_READ, DEVICES_COMMAND, DEVICES_DANGEROUS, AGENTS_READ, AGENTS_WRITE)
    async with AsyncFleetClient(str(stage.client.base_url), "flt_some") as some:
        assert await refused(some, desired.change(MAC, patch(tools={"self.unknown": {}}))) == "403 scope-missing"
        assert await refused(some, desired.change(MAC, patch(agent=1))) == "403 scope-missing"
        assert (await some.send(desired.change(MAC, patch(volume=4)))).version == 1
    async with AsyncFleetClient(str(stage.client.base_url), "flt_more") as more:
        assert (await more.send(desired.change(MAC, patch(tools={"self.unknown": {}})))).version == 2
        assert await refused(more, desired.change(MAC, patch(agent=99))) == "404 not-found"
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as stranger:
        assert await refused(stranger, desired.read(MAC)) == "404 not-found"
        assert (await stranger.send(desired.drift())).items == []


async def test_an_agent_is_desired_and_taken_back(
    site: StateSite, client: AsyncFleetClient, stage: ControlStage
) -> None:
    await site.add_stubs(1)
    agent = (await stage.ask("POST /v1/agents", json={"name": "a"})).json()["id"]
    assert (await client.send(desired.change(MAC, patch(agent=agent)))).desired == {"agent": agent}
    assert (await client.send(desired.read(MAC))).desired == {"agent": agent}
    assert (await client.send(desired.change(MAC, patch(agent=None)))).desired == {}


async def test_drift_is_listed_page_by_page_and_shown_by_commands(
    site: StateSite, client: AsyncFleetClient, fleet: CommandLine, stage: ControlStage
) -> None:
    macs = await site.add_stubs(5)
    for mac in macs:
        await site.desire(mac, {"volume": "watch"}, volume=70)
    for mac in macs[:3]:
        site.stubs[mac].values["volume"] = 90
    await site.settle()
    pages = [[one.device for one in page.items] async for page in client.pages(desired.drift(limit=2))]
    assert pages == [macs[:2], macs[2:3]]
    operator = Operator(fleet, stage)
    shown = await operator.run("devices", "drift")
    assert all(mac in shown for mac in macs[:3]) and macs[3] not in shown
    assert [one["mac"] for one in await operator.rows("devices", "search", "drift")] == macs[:3]
    found = await operator.row("devices", "desired", macs[0], "volume=90", "--policy", "volume=once")
    assert (found["version"], found["desired"], found["drift"]) == (2, {"volume": 90}, False)
    await operator.run("devices", "desired", macs[0], "volume=1", "--version", "1", code=2)
    assert (await operator.row("devices", "desired", macs[0], "--remove", "volume"))["desired"] == {}
    assert "volume" in await operator.run("devices", "desired", macs[1])
    assert "volume" in await operator.run("devices", "desired", macs[0], "volume=loud", code=2)
    await operator.run("devices", "desired", macs[0], "--policy", "volume", code=2)


async def test_a_job_changes_many_and_another_gives_an_agent(
    site: StateSite, stage: ControlStage, fleet: CommandLine
) -> None:
    operator = Operator(fleet, stage)
    await site.add_stubs(3)
    words = ("jobs", "create", "quiet", "volume=40", "--query", "", "--shadow", "--keep", "volume=enforce")
    made = await operator.row(*words)
    assert (made["kind"], made["shadow"]) == (
        "shadow",
        {"desired": {"volume": 40}, "policies": {"volume": "enforce"}},
    )
    agent = (await stage.ask("POST /v1/agents", json={"name": "prompt-b"})).json()["id"]
    given = await operator.row("jobs", "create", "canary", "--query", "", "--agent", "prompt-b")
    assert (given["kind"], given["agent"]) == ("agent", agent)
    for body in (
        {"kind": "shadow"},
        {"kind": "agent"},
        {"kind": "tool", "tool": LAMP, "agent": agent},
        {"kind": "shadow", "shadow": {"desired": {"agent": agent}}},
        {"kind": "shadow", "shadow": {"desired": {"tools": {"self.reboot": {}}}}},
    ):
        found = await stage.ask("POST /v1/jobs", json={"name": "x", "query": "", **body})
        assert found.status_code == 422, body
    missing = await stage.ask("POST /v1/jobs", json={"name": "x", "query": "", "kind": "agent", "agent": 99})
    assert missing.status_code == 404
    await stage.add_token("flt_careful", *(set(SCOPES) - {DEVICES_DANGEROUS, AGENTS_WRITE}))
    for kind, fields in (("agent", {"agent": agent}), ("shadow", {"shadow": {"desired": {"tools": {"self.x": {}}}}})):
        body = {"name": "x", "query": "", "kind": kind, **fields}
        assert (await stage.ask("POST /v1/jobs", "flt_careful", json=body)).status_code == 403
