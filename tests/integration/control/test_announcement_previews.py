"""Who would be told an announcement, by which way, and who would not, over HTTP and as commands."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet.adapters.redis.keys import prefix
from fleet.adapters.sql.job_rows import JobRows
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE
from fleet.client import announcements
from fleet.client.client import AsyncFleetClient
from fleet.roles.control import device_dry_run
from fleet.roles.control.access import milliseconds
from fleet.wire.control.announcements import AnnouncementRequest
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import JobSite

TEXT = "Dinner is ready."
OFFLINE, IN_SESSION, QUIET = "the device is not connected", "the device is in a session", "its quiet hours"
NO_WAY, REVOKED = "it has none of these ways", "the device is revoked"
TOO_LONG, NONE_LEFT = "its quiet hours last longer than the announcement", "no announcement is left for today"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


class Site:
    """Ten devices: two talk, three are idle and fetch clips, two have old firmware, two are away, one is revoked."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage, self.jobs = stage, JobSite(stage.database, stage.services.store)
        self.macs: list[str] = []

    async def fill(self) -> None:
        self.macs = await self.jobs.add_devices(10)
        for mac in self.macs:
            await self.know(mac, dialect="xiaozhi", host="10.0.0.2", fw="2.5.1" if mac < self.macs[5] else "2.4.2")
        for mac in self.macs[:2]:
            await self.talk(mac)
        await self.jobs.connect(self.macs[7:9], online=False)
        for mac, change in ((self.macs[7], {"online": False}), (self.macs[9], {"state": "revoked"})):
            async with self.stage.database.writing() as connection:
                await connection.execute(DEVICE.update().where(DEVICE.c.mac == mac_number(mac)).values(**change))

    async def know(self, mac: str, **fields: str) -> None:
        store = self.stage.services.store
        await store.ask(store.client.hset(store.keys.device(mac), mapping=fields))

    async def talk(self, mac: str) -> None:
        store = self.stage.services.store
        await store.ask(store.client.hset(store.keys.session(mac), mapping={"id": "s", "edge": "e"}))

    async def live_in(self, mac: str, timezone: str) -> None:
        store = self.stage.services.store
        await store.ask(store.client.hset(f"{prefix(store.keys.shard(mac))}o:{mac}", "tz", timezone))

    async def preview(self, status: int = 200, token: str = FULL, **fields: Any) -> dict[str, Any]:
        body = {"text": TEXT, **({} if "device" in fields else {"query": ""}), **fields}
        answer = await self.stage.ask("POST /v1/announcements:preview", token, json=body)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def fates(self, **fields: Any) -> tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int]]:
        """Return how many devices are told by each way, wait, and are skipped."""
        found = await self.preview(**fields)
        ways = {one["way"]: one["devices"] for one in found["ways"]}
        waiting, skipped = ({one["reason"]: one["devices"] for one in found[name]} for name in ("waiting", "skipped"))
        assert found["devices"] == sum((*ways.values(), *waiting.values(), *skipped.values())), found
        return ways, waiting, skipped


@pytest.fixture
async def site(stage: ControlStage) -> Site:
    one = Site(stage)
    await one.fill()
    return one


async def test_each_device_has_its_way_or_its_reason(site: Site) -> None:
    ways = {"speech": 2, "notify": 3, "alert": 2}
    # That one of them is away, only Redis knows until now.
    assert await site.fates() == (ways, {OFFLINE: 2}, {REVOKED: 1})
    assert await site.fates(ways=["notify"]) == (
        {"notify": 3},
        {IN_SESSION: 2, OFFLINE: 2},
        {NO_WAY: 2, REVOKED: 1},
    )
    assert await site.fates(ways=["speech", "wake"]) == ({"speech": 2, "wake": 5}, {OFFLINE: 2}, {REVOKED: 1})
    await site.know(site.macs[2], nofetch="2 2.5.1")
    await site.know(site.macs[3], dialect="registrar")
    ways = {"speech": 2, "notify": 1, "alert": 3}
    assert await site.fates() == (ways, {OFFLINE: 2}, {NO_WAY: 1, REVOKED: 1})
    assert await JobRows(site.stage.database, 1).page(None, 10) == [], "nobody was told"


async def test_quiet_hours_are_those_of_the_device_and_may_outlast_the_announcement(site: Site) -> None:
    hours = [f"{datetime.now(UTC) + timedelta(hours=of):%H:00}" for of in (0, 2)]
    quiet = f"{hours[0]}-{hours[1]}"
    for mac in site.macs[2:4]:
        await site.live_in(mac, "720")
    told = {"notify": 2}
    lasting = await site.fates(quiet=quiet, expires_seconds=8 * 3600)
    assert lasting == (told, {QUIET: 5, OFFLINE: 2}, {REVOKED: 1})
    assert await site.fates(quiet=quiet, expires_seconds=60) == (told, {OFFLINE: 2}, {TOO_LONG: 5, REVOKED: 1})


async def test_the_limit_of_the_day_is_a_reason(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    now = milliseconds()  # no midnight comes between
    monkeypatch.setattr("fleet.roles.control.routes.announcements.milliseconds", lambda: now)
    object.__setattr__(site.stage.services.settings, "announcements_daily", 1)
    assert (await site.preview())["left_today"] == 1
    assert (await site.stage.ask("POST /v1/announcements", json={"text": TEXT, "query": ""})).status_code == 201
    assert (await site.preview())["left_today"] == 0
    assert await site.fates() == ({}, {}, {NONE_LEFT: 10})


async def test_of_very_many_devices_a_sample_is_looked_at(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_dry_run, "MOST_LOOKED", 4)
    ways, waiting, skipped = await site.fates()
    assert sum(ways.values()) + waiting[OFFLINE] == 9 and skipped == {REVOKED: 1}


async def test_what_cannot_be_announced_has_no_dry_run_and_foreign_devices_are_not_there(site: Site) -> None:
    await site.preview(400, query="nofield=3")
    await site.preview(422, ways=["radio"])
    await site.preview(404, STRANGER, device=site.macs[0])
    assert (await site.preview(token=STRANGER))["devices"] == 0
    assert (await site.fates(device=site.macs[0]))[0] == {"speech": 1}


async def test_client_and_commands_show_it(site: Site, fleet: CommandLine) -> None:
    async with AsyncFleetClient(str(site.stage.client.base_url), FULL) as client:
        found = await client.send(announcements.preview(AnnouncementRequest(text=TEXT, query="", ways=("wake",))))
        assert [(one.way, one.devices) for one in found.ways] == [("wake", 7)]
    operator = Operator(fleet, site.stage)
    shown = await operator.row("announce", TEXT, "--query", "", "--dry-run")
    assert {one["way"]: one["devices"] for one in shown["ways"]} == {"speech": 2, "notify": 3, "alert": 2}
    answer = await site.stage.ask("POST /v1/agents", json={"name": "ann"})
    assert answer.status_code == 201
    shown = await operator.row("agents", "assign", "ann", "--site", "--dry-run")
    assert (shown["changing"], shown["talking"]) == (10, 2)
    assert (await site.stage.ask("GET /v1/assignments")).json()["items"] == []
    await operator.row("agents", "assign", "ann", "--site", "--most", "10")
    shown = await operator.row("agents", "unassign", "--site", "--dry-run")
    assert shown["changing"] == 10
    assert len((await site.stage.ask("GET /v1/assignments")).json()["items"]) == 1
