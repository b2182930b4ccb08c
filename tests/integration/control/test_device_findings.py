"""The doctor's findings about a device over the REST API: those of `fleet doctor --device`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.adapters.redis.access.decisions import Decisions
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.permissions import AGENTS_READ
from fleet.roles.control.doctor.device import SiteTerms, examine_device
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import STRANGER, ControlStage

MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


async def findings(stage: ControlStage) -> list[dict[str, Any]]:
    answer = await stage.ask(f"GET /v1/devices/{MAC}/findings")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def test_they_are_those_of_the_doctor(stage: ControlStage) -> None:
    store = stage.services.store
    assert (await stage.ask(f"GET /v1/devices/{MAC}/findings")).status_code == 404
    await DeviceRows(stage.database, 1).add([NewDevice(MAC)])
    (first, *_) = found = await findings(stage)
    assert (first["check"], first["case"], first["verdict"]) == ("device.bootstrap", "never", "problem")
    assert [one.message for one in await examine_device(store, MAC, SiteTerms("open"))] == [
        one["message"] for one in found
    ]
    await PolicyStore(store).begin("code", datetime.now(UTC).timestamp(), 0)
    await Decisions(store).revoke(MAC)
    cases = [(one["check"], one["case"]) for one in await findings(stage)]
    assert cases[:2] == [("device.revoked", "yes"), ("device.bound", "no")]


async def test_who_may_not_sees_none(stage: ControlStage) -> None:
    await DeviceRows(stage.database, 1).add([NewDevice(MAC)])
    assert (await stage.ask(f"GET /v1/devices/{MAC}/findings", STRANGER)).status_code == 404
    token = await stage.add_token("flt_agents", AGENTS_READ)
    assert (await stage.ask(f"GET /v1/devices/{MAC}/findings", token)).status_code == 403


async def test_the_command_shows_them(stage: ControlStage, fleet: CommandLine) -> None:
    await DeviceRows(stage.database, 1).add([NewDevice(MAC)])
    text = await Operator(fleet, stage).run("devices", "findings", MAC, code=1)
    assert "device.bootstrap" in text and "has not asked bootstrap" in text
