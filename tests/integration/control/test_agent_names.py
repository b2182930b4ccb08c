"""The agent of a device is the name of the agent that counts for it, and follows from assignments alone."""

import csv
import io
from typing import Any

import pytest
from sqlalchemy import update

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.event_rows import EventRows, NewEvent
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.usage_rows import UsageRows
from fleet.roles.control.agents.compiler import AgentCompiler
from tests.support.control_server import FULL, OTHER_TENANT, STRANGER, ControlStage

MACS = tuple(f"02:00:00:00:00:0{number}" for number in range(1, 5))
OWN, GROUPED, SITES, THEIRS = MACS


class Operator:
    """Who gives agents to devices: one has `kids` itself, one of its group `night`, one only that of the site."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage = stage
        self.agents: dict[str, int] = {}
        self.group = 0

    async def ask(self, verb: str, status: int = 200, token: str = FULL, **more: Any) -> Any:
        answer = await self.stage.ask(verb, token, **more)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def assign(self, name: str, token: str = FULL, **whom: Any) -> None:
        made = await self.ask("POST /v1/agents", 201, token, json={"name": name})
        self.agents.setdefault(name, made["id"])
        await self.ask(f"POST /v1/agents/{made['id']}:publish", 200, token)
        await self.ask(f"POST /v1/agents/{made['id']}:assign", 200, token, json=whom)

    async def found(self, query: str, token: str = FULL) -> list[str]:
        """Return the devices that a query means."""
        page = await self.ask("GET /v1/devices", 200, token, params={"filter": query})
        return [one["mac"] for one in page["items"]]

    async def shown(self) -> dict[str, str]:
        """Return the agents of the devices."""
        page = await self.ask("GET /v1/devices", params={"fields": "mac,agent"})
        return {one["mac"]: one["agent"] for one in page["items"]}

    async def write(self, mac: str, text: str) -> None:
        """Write the column of a device, as an earlier version did."""
        async with self.stage.database.writing() as connection:
            row = update(DEVICE).where(DEVICE.c.mac == mac_number(mac))
            await connection.execute(row.values(agent=text))


@pytest.fixture
async def operator(stage: ControlStage) -> Operator:
    await DeviceRows(stage.database, 1).add([NewDevice(mac) for mac in (OWN, GROUPED, SITES)])
    await DeviceRows(stage.database, OTHER_TENANT).add([NewDevice(THEIRS)])
    opened = Operator(stage)
    await opened.assign("site", site=True)
    await opened.assign("kids", device=OWN)
    opened.group = (await opened.ask("POST /v1/groups", 201, json={"name": "g"}))["id"]
    await opened.ask(f"POST /v1/groups/{opened.group}/members:add", json={"macs": [GROUPED]})
    await opened.assign("night", group=opened.group)
    await opened.assign("kids", STRANGER, device=THEIRS)
    return opened


async def test_answers_queries_counts_and_files_have_the_name(operator: Operator) -> None:
    assert await operator.shown() == {OWN: "kids", GROUPED: "night", SITES: ""}
    assert (await operator.ask(f"GET /v1/devices/{OWN}"))["agent"] == "kids"
    members = await operator.ask(f"GET /v1/groups/{operator.group}/members")
    assert [one["agent"] for one in members["items"]] == ["night"]
    meant = {
        "agent=kids": [OWN],
        "agent:ni*": [GROUPED],
        "agent!=kids": [GROUPED, SITES],
        'agent=""': [SITES],
        "agent:*": [OWN, GROUPED, SITES],
        f"agent={operator.agents['night']}": [],
    }
    assert {query: await operator.found(query) for query in meant} == meant
    assert await operator.found("agent=kids", STRANGER) == [THEIRS]
    [counts] = (await operator.ask("GET /v1/devices:counts?by=agent"))["items"]
    assert counts["values"] == {"": 1, "kids": 1, "night": 1}
    exported = (await operator.stage.ask("GET /v1/devices:export")).text
    assert [row["agent"] for row in csv.DictReader(io.StringIO(exported))] == ["kids", "night", ""]
    lines = (await operator.stage.ask("GET /v1/devices:export?format=ndjson")).text
    for kind, text in (("text/csv", exported.replace("kids", "other")), ("application/x-ndjson", lines)):
        done = await operator.ask("POST /v1/devices:import", content=text, headers={"Content-Type": kind})
        assert (done["added"], done["changed"], done["unchanged"], done["errors"]) == (0, 0, 3, []), kind
    assert await operator.shown() == {OWN: "kids", GROUPED: "night", SITES: ""}


async def test_nobody_writes_the_agent_of_a_device(operator: Operator) -> None:
    for verb, body in ((f"PATCH /v1/devices/{OWN}", {"agent": "x"}), ("POST /v1/devices", {"mac": OWN, "agent": ""})):
        assert "POST /v1/agents/{agent}:assign" in (await operator.ask(verb, 422, json=body))["detail"]
    written = (await operator.ask("GET /v1/openapi.json"))["components"]["schemas"]
    assert "agent" in written["Device"]["properties"]
    assert not {"agent"} & {*written["DevicePatch"]["properties"], *written["DeviceAddition"]["properties"]}


async def test_a_renamed_agent_has_its_new_name_at_once(operator: Operator) -> None:
    await operator.ask(f"PATCH /v1/agents/{operator.agents['night']}", json={"name": "day"})
    assert await operator.shown() == {OWN: "kids", GROUPED: "day", SITES: ""}
    assert await operator.found("agent=night") == []
    assert await operator.found("agent=day") == [GROUPED]
    await operator.ask(f"DELETE /v1/agents/{operator.agents['night']}", 204)
    assert await operator.shown() == {OWN: "kids", GROUPED: "", SITES: ""}


async def test_what_earlier_versions_wrote_is_no_agent_and_is_replaced(operator: Operator) -> None:
    theirs = (await operator.ask("GET /v1/agents", 200, STRANGER))["items"][0]["id"]
    for word in ("kids", str(theirs), "²", "9" * 30, f"0{operator.agents['night']}"):
        await operator.write(OWN, word)
        assert (await operator.shown())[OWN] == "", word
        assert await operator.found("agent=kids") == [], word
        [counts] = (await operator.ask("GET /v1/devices:counts?by=agent"))["items"]
        assert counts["values"] == {"": 2, "night": 1}, word
    await AgentCompiler(operator.stage.database, operator.stage.services.store).refresh()
    assert await operator.shown() == {OWN: "kids", GROUPED: "night", SITES: ""}


async def test_the_usage_has_the_name_where_an_event_has_none(operator: Operator, database: Database) -> None:
    rows = EventRows(database, 1)
    await rows.begin()
    started = [NewEvent(0, f"{at}-0", 0, "session.started", mac, "{}") for at, mac in enumerate(MACS)]
    await rows.store(started, {})
    sums = await UsageRows(database, 1).sums(("device", "agent"), 0, 1)
    assert {one["device"]: one["agent"] for one in sums} == {OWN: "kids", GROUPED: "night", SITES: ""}


async def test_a_group_whose_query_names_the_agent_gets_none(operator: Operator) -> None:
    """Its devices would leave it as soon as they had its agent, and come back."""
    body = {"name": "loop", "query": "tag.site=berlin OR NOT agent:ki*"}
    loop = (await operator.ask("POST /v1/groups", 201, json=body))["id"]
    refused = await operator.ask(f"POST /v1/agents/{operator.agents['kids']}:assign", 409, json={"group": loop})
    assert refused["code"] == "names-agent"
    await operator.ask(f"PATCH /v1/groups/{loop}", json={"query": "mac:02*"})
    await operator.ask(f"POST /v1/agents/{operator.agents['night']}:assign", json={"group": loop})
    assert (await operator.ask(f"PATCH /v1/groups/{loop}", 409, json={"query": "agent=x"}))["code"] == "names-agent"
    assert await operator.shown() == {OWN: "kids", GROUPED: "night", SITES: "night"}
