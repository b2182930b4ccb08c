"""Alerts and their rules over the REST API and as commands."""

from collections.abc import Iterator

import pytest

from fleet.adapters.sql.alert_writes import alert_writes
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.event_rows import EventRows
from fleet.client import alerts
from fleet.client.client import AsyncFleetClient
from fleet.core.alert_signs import Breach, Subject
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, ControlStage

NOW = 1_800_000_000_000


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


async def open_alerts(stage: ControlStage) -> None:
    """Let three devices flap, and two tools fail."""
    await EventRows(stage.database, 1).begin()
    async with alert_writes(stage.database, 1, NOW) as writes:
        await writes.begin(Breach(Subject(1, "flapping", mac), "7 connections", NOW) for mac in (1, 2, 3))
        await writes.begin(Breach(Subject(1, "tools", name=name), "9 of 9 calls failed", NOW) for name in ("a", "b"))


async def test_alerts_are_read_page_by_page_and_closed(stage: ControlStage) -> None:
    await open_alerts(stage)
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as client:
        pages = [page.items async for page in client.pages(alerts.listing(only_open=True, limit=2))]
        assert [[one.rule for one in page] for page in pages] == [["tools", "tools"], ["flapping"]]
        flapping = pages[1][0]
        assert (flapping.subjects, flapping.present, flapping.text) == (3, 3, "7 connections")
        devices = [one.device async for page in client.pages(alerts.subjects(flapping.id, 2)) for one in page.items]
        assert devices == [f"00:00:00:00:00:0{number}" for number in (1, 2, 3)]
        for _ in range(2):
            closed = await client.send(alerts.acknowledge(flapping.id))
            assert closed.closed is not None
            assert closed.closed_by == f"token:{FULL}"
        assert len((await client.send(alerts.listing(only_open=True))).items) == 2
        assert len((await client.send(alerts.listing())).items) == 3
    log = await AuditRows(stage.database).page(1, AuditFilter(object=f"alert/{flapping.id}"), None, 20)
    assert [row.action for row in log] == ["alert.acknowledge"], "once"


async def test_rules_are_changed_and_wrong_thresholds_refused(stage: ControlStage) -> None:
    for body, status in (
        ({"rule": "silent", "thresholds": {"hours": 3}}, 422),
        ({"rule": "silent", "thresholds": {"days": 0}}, 422),
        ({"rule": "noisy"}, 422),
        ({"rule": "silent", "thresholds": {"days": 3}}, 200),
        ({"rule": "silent", "enabled": False}, 200),
    ):
        assert (await stage.ask("PATCH /v1/alert-rules", json=body)).status_code == status, body
    rules = {one["rule"]: one for one in (await stage.ask("GET /v1/alert-rules")).json()["items"]}
    assert (rules["silent"]["enabled"], rules["silent"]["thresholds"]) == (False, {"days": 3})
    assert rules["flapping"]["enabled"]


async def test_alerts_are_shown_and_steered_from_the_command_line(fleet: CommandLine, stage: ControlStage) -> None:
    await open_alerts(stage)
    operator = Operator(fleet, stage)
    text = await operator.run("alerts", "list")
    assert "3 devices, 3 still: 7 connections" in text
    assert "9 of 9 calls failed" in text
    assert "00:00:00:00:00:02" in await operator.run("alerts", "show", "1")
    assert "closed by" in await operator.run("alerts", "acknowledge", "1")
    assert [row["rule"] for row in await operator.rows("alerts", "list")] == ["tools", "tools"]
    assert len(await operator.rows("alerts", "list", "--all")) == 3
    assert "silent is off: days=2" in await operator.run("alerts", "set", "silent", "days=2", "--off")
    assert "off" in await operator.run("alerts", "rules")
    await operator.run("alerts", "set", "noisy", "days=2", code=2)
