"""The rules for alerts on both kinds of database: what opens, joins, closes, and what a restart changes."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from fleet.adapters.sql.alert_events import AlertEvents
from fleet.adapters.sql.alert_rows import AlertRow, AlertRows
from fleet.adapters.sql.alert_writes import JOIN_MS, MOST_OPEN, alert_writes
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_schema import DESIRED_STATE
from fleet.adapters.sql.device_rows import DeviceRows
from fleet.adapters.sql.event_rows import EventLog, EventRows, NewEvent
from fleet.adapters.sql.history_schema import EVENT
from fleet.adapters.sql.job_schema import JOB
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, TENANT
from fleet.core.alert_rules import RuleTerms
from fleet.core.alert_signs import Breach, Subject
from fleet.ground.errors import Fenced
from fleet.ground.metrics import alerts as counted
from fleet.roles.control.leader.alerts import Alerts
from tests.support.job_site import JobSite
from tests.support.memory_store import memory_store

NOW = 1_800_000_000_000
FIRST = mac_number("02:00:00:00:00:00")
MINUTE, DAY = 60_000, 86_400_000


class Site:
    """The leader's work on alerts, and a collector that stores what happens."""

    def __init__(self, database: Database) -> None:
        self.database, self.now = database, NOW
        self.rows, self.fence = AlertRows(database, 1), 0

    async def lead(self) -> Alerts:
        self.fence += 1
        self.work = Alerts(self.database, 30)
        await self.work.begin(self.fence)
        return self.work

    async def add_devices(self, count: int, tenant: int = 1, **columns: Any) -> list[int]:
        macs = list(range(FIRST, FIRST + count))
        values = {"tenant": tenant, "search": "", "online": True, "last_seen": NOW, **columns}
        async with self.database.writing() as connection:
            await connection.execute(insert(DEVICE), [{**values, "mac": mac} for mac in macs])
        return macs

    async def change_device(self, mac: int, **columns: Any) -> None:
        async with self.database.writing() as connection:
            await connection.execute(update(DEVICE).where(DEVICE.c.mac == mac).values(**columns))

    async def store(self, kind: str, macs: Iterable[int] = (0,), **data: Any) -> None:
        said = json.dumps(data)
        events = [NewEvent(0, "1-0", self.now, kind, mac_text(mac) if mac else "", said) for mac in macs]
        await EventRows(self.database, self.fence).store(events, {})

    async def step(self) -> None:
        while await self.work.step(self.now):
            pass

    async def happen(self, kind: str, macs: Iterable[int] = (0,), **data: Any) -> None:
        await self.store(kind, macs, **data)
        await self.step()

    async def sweep(self, later: int = 0) -> None:
        self.now += later
        await self.work.sweep(self.now)

    async def alerts(self, *, only_open: bool = True) -> list[AlertRow]:
        return list(reversed(await self.rows.page(2**62, 1_000, only_open=only_open)))

    async def told(self) -> list[dict[str, Any]]:
        events = await EventLog(self.database).after(0, 10_000)
        return [{"kind": one.kind, "mac": one.mac, **json.loads(one.data)} for one in events if "alert" in one.kind]


@pytest.fixture
async def site(database: Database) -> Site:
    one = Site(database)
    await one.lead()
    return one


async def test_a_device_that_connects_too_often_opens_one_alert_that_closes_by_itself(site: Site) -> None:
    mac, other = await site.add_devices(2)
    for number in range(8):
        await site.happen("device.online", [mac, *([other] if number < 5 else [])])
    (alert,) = await site.alerts()
    assert (alert.rule, alert.subjects, alert.present) == ("flapping", 1, 1)
    assert alert.text == "8 connections in 10 minutes"
    assert counted.opened.read()[("flapping",)] >= 1
    await site.sweep(5 * MINUTE)
    await site.happen("device.online", [mac])
    await site.sweep(6 * MINUTE)
    assert [one.id for one in await site.alerts()] == [alert.id], "it connected again meanwhile"
    await site.sweep(5 * MINUTE)
    (closed,) = await site.alerts(only_open=False)
    assert (closed.closed, closed.closed_by, closed.present) == (site.now, "", 0)
    opened = {"kind": "alert.opened", "mac": mac, "alert": alert.id, "rule": "flapping", "subjects": 1}
    assert await site.told() == [
        {**opened, "text": "6 connections in 10 minutes"},
        {"kind": "alert.closed", "mac": 0, "alert": alert.id, "rule": "flapping", "by": ""},
    ]


async def test_connections_of_other_times_and_tenants_do_not_count(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    await site.store("device.online", [mac] * 5)
    site.now += 11 * MINUTE
    await site.happen("device.online", [mac] * 5)
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="x", name="x", created=1))
        await connection.execute(update(EVENT).values(tenant=2))
    await site.happen("device.online", [mac])
    assert await site.alerts() == []


async def test_many_devices_at_once_are_one_alert_and_later_ones_another(site: Site) -> None:
    macs = await site.add_devices(1_200)
    await site.happen("device.online", macs[:1_000] * 6)
    (alert,) = await site.alerts()
    assert (alert.subjects, alert.present) == (1_000, 1_000)
    site.now += JOIN_MS
    await site.happen("device.online", macs[1_000:1_100] * 6)
    assert [one.subjects for one in await site.alerts()] == [1_100]
    site.now += 1
    await site.happen("device.online", macs[1_100:] * 6)
    assert [one.subjects for one in await site.alerts()] == [1_100, 100]
    assert [one["subjects"] for one in await site.told()] == [1_000, 100], "who joins opens nothing"
    page = await site.rows.subjects(alert.id, (macs[2], ""), 2)
    assert [one.mac for one in page] == macs[3:5]


async def test_alerts_of_a_rule_are_bounded(site: Site) -> None:
    async with alert_writes(site.database, site.fence, NOW) as writes:
        await writes.begin(Breach(Subject(1, "tools", name=f"t{n}"), "x") for n in range(MOST_OPEN + 9))
    found = await site.alerts()
    assert len(found) == MOST_OPEN
    assert found[-1].subjects == 10


async def test_silent_devices_are_found_and_close_when_they_come_back_or_leave(site: Site) -> None:
    macs = await site.add_devices(5, online=False, last_seen=NOW - 8 * DAY)
    await site.change_device(macs[4], last_seen=NOW - 6 * DAY)
    await site.sweep()
    await site.sweep()
    (alert,) = await site.alerts()
    assert (alert.rule, alert.present, alert.text) == ("silent", 4, "not connected for 7 days")
    await site.happen("device.online", [macs[0]])
    assert (await site.alerts())[0].present == 3
    await site.change_device(macs[0], online=True)
    await site.change_device(macs[1], state="revoked")
    assert await DeviceRows(site.database, 1).forget(mac_text(macs[2]))
    await site.sweep()
    (left,) = await site.alerts()
    assert (left.present, left.subjects) == (1, 3), "of a forgotten device nothing is left"
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=2, slug="x", name="x", created=1))
    await site.change_device(macs[3], tenant=2)
    await site.sweep()
    assert await site.alerts() == []
    assert [one.rule for one in await AlertRows(site.database, 2).page(2**62, 9, only_open=True)] == ["silent"]


async def test_devices_that_were_never_seen_or_that_nobody_bound_are_not_silent(site: Site) -> None:
    macs = await site.add_devices(3, online=False, last_seen=NOW - 9 * DAY)
    await site.change_device(macs[0], last_seen=0)
    await site.change_device(macs[1], stranger=True)
    await site.change_device(macs[2], online=True)
    await site.sweep()
    assert await site.alerts() == []


async def test_a_device_that_drifts_opens_an_alert_until_it_is_right_again(site: Site) -> None:
    macs = await site.add_devices(3)
    state = {"tenant": 1, "version": 1, "properties": {}, "reported": {}, "reported_at": 0, "calls": [], "round": 0}
    drifts = ((True, 0), (True, NOW), (False, 0))
    async with site.database.writing() as connection:
        rows = [
            {**state, "mac": mac, "drift": drift, "since": since, "due": 0}
            for mac, (drift, since) in zip(macs, drifts, strict=True)
        ]
        await connection.execute(insert(DESIRED_STATE), rows)
    await site.sweep()
    (alert,) = await site.alerts()
    assert (alert.rule, alert.present, alert.text) == ("drift", 1, "differs from its desired state")
    assert [one.mac for one in await site.rows.subjects(alert.id, (-1, ""), 9)] == macs[:1], "one is being corrected"
    async with site.database.writing() as connection:
        await connection.execute(update(DESIRED_STATE).values(drift=False))
    await site.sweep()
    assert await site.alerts() == []


async def test_a_tool_whose_calls_fail_opens_an_alert(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    await site.happen("tool.called", [mac] * 10, tool="self.x", outcome="ok")
    await site.happen("tool.called", [mac] * 10, tool="self.x", outcome="error")
    await site.happen("tool.called", [mac] * 19, tool="self.y", outcome="unknown")
    assert await site.alerts() == [], "half of them is not more than half; and 19 are no sample"
    await site.happen("tool.called", [mac], tool="self.x", outcome="unknown")
    (alert,) = await site.alerts()
    assert (alert.rule, alert.text) == ("tools", "11 of 21 calls failed in 15 minutes")
    assert [(one.mac, one.name) for one in await site.rows.subjects(alert.id, (-1, ""), 9)] == [(0, "self.x")]
    site.now += 16 * MINUTE
    await site.happen("tool.called", [mac] * 20, tool="self.y", outcome="error")
    await site.sweep()
    assert [one.text for one in await site.alerts()] == ["20 of 20 calls failed in 15 minutes"]


async def test_a_job_that_halts_opens_an_alert_until_it_goes_on(site: Site) -> None:
    await site.happen("job.halted", job=7, name="j", reason="2 of 3 failed")
    assert [(one.rule, one.text) for one in await site.alerts()] == [("jobs", "j halted: 2 of 3 failed")]
    await site.happen("job.running", job=7, name="j")
    assert await site.alerts() == []


async def test_a_job_that_waits_for_a_person_for_a_day_opens_an_alert(site: Site) -> None:
    jobs = JobSite(site.database, await memory_store())
    ids = [(await jobs.add_job()).id for _ in range(4)]
    states = (("paused", "", 25), ("running", "approval", 25), ("running", "", 25), ("halted", "", 23))
    for number, (state, reason, hours) in zip(ids, states, strict=True):
        values = {"state": state, "reason": reason, "since": NOW - hours * 60 * MINUTE}
        async with site.database.writing() as connection:
            await connection.execute(update(JOB).where(JOB.c.id == number).values(values))
    await site.sweep()
    assert [one.text for one in await site.alerts()] == ["j waits: paused", "j waits: approval"]
    async with site.database.writing() as connection:
        await connection.execute(update(JOB).values(state="running", reason=""))
    await site.sweep()
    assert await site.alerts() == []


async def test_what_a_person_closed_is_told_again_only_after_it_was_over(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    await site.happen("device.online", [mac] * 6)
    (alert,) = await site.alerts()
    assert await site.rows.close(alert.id, "token:ann", site.now)
    assert not await site.rows.close(alert.id, "token:bob", site.now), "it is closed"
    await site.happen("device.online", [mac])
    assert await site.alerts() == []
    assert (await site.told())[-1]["by"] == "token:ann"
    await site.sweep(11 * MINUTE)
    await site.happen("device.online", [mac] * 6)
    assert len(await site.alerts()) == 1
    assert [one["kind"] for one in await site.told()] == ["alert.opened", "alert.closed", "alert.opened"]


async def test_thresholds_of_a_tenant_count_and_a_rule_that_is_off_closes_its_alerts(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    await site.rows.change_rule("flapping", RuleTerms(True, {"connections": 2, "minutes": 1}))
    await site.happen("device.online", [mac] * 2)
    assert len(await site.alerts()) == 1
    await site.rows.change_rule("flapping", RuleTerms(False))
    await site.happen("device.online", [mac] * 9)
    await site.sweep()
    assert await site.alerts() == []


async def test_a_new_leader_goes_on_where_the_old_one_stopped_and_the_old_one_changes_nothing(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    old = site.work
    await site.happen("tool.called", [mac] * 15, tool="self.x", outcome="error")
    await site.happen("device.online", [mac] * 3)
    await site.lead()
    await site.store("device.online", [mac] * 3)
    with pytest.raises(Fenced):
        await old.step(site.now)
    await site.lead()
    await site.happen("tool.called", [mac] * 5, tool="self.x", outcome="error")
    assert sorted(one.text for one in await site.alerts()) == [
        "20 of 20 calls failed in 15 minutes",
        "6 connections in 10 minutes",
    ]
    await site.lead()
    await site.step()
    assert len(await site.told()) == 2


async def test_events_from_before_the_first_leader_open_nothing(database: Database) -> None:
    site = Site(database)
    site.fence = 1
    await EventRows(database, 1).begin()
    (mac,) = await site.add_devices(1)
    await site.store("device.online", [mac] * 9)
    await site.lead()
    await site.step()
    assert await site.alerts() == []


async def test_old_alerts_are_deleted_and_their_numbers_not_given_again(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    await site.happen("device.online", [mac] * 6)
    await site.sweep(11 * MINUTE)
    await site.sweep(29 * DAY)
    assert len(await site.alerts(only_open=False)) == 1
    await site.sweep(2 * DAY)
    assert [one for one in await site.alerts(only_open=False) if one.rule == "flapping"] == []
    await site.happen("job.halted", job=1, name="j")
    assert (await site.alerts(only_open=False))[-1].id > 1


async def test_the_start_of_a_time_is_found_among_events_with_holes(site: Site) -> None:
    (mac,) = await site.add_devices(1)
    for _ in range(40):
        site.now += MINUTE
        await site.store("device.online", [mac])
    async with site.database.writing() as connection:
        await connection.execute(delete(EVENT).where(EVENT.c.id % 3 == 0))
        kept = (await connection.execute(EVENT.select())).all()
    for since in (0, NOW, NOW + 7 * MINUTE, NOW + 39 * MINUTE, NOW + 99 * MINUTE):
        expected = sum(row.at >= since for row in kept)
        found = await AlertEvents(site.database).connections(1, [mac], since, 1)
        assert found == ({mac: expected} if expected else {}), since
