"""Desired states on both kinds of database: the leader's work, with owners of shards and devices that remember."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, select, update

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_looks import BUSY_MS
from fleet.adapters.sql.desired_rows import DesiredRows, TooManyProperties
from fleet.adapters.sql.desired_schema import DESIRED_STATE, NEVER, RESTING
from fleet.adapters.sql.device_moves import DeviceMoves
from fleet.adapters.sql.device_rows import DeviceRows, VersionConflict
from fleet.adapters.sql.device_search import DeviceSearch
from fleet.adapters.sql.event_rows import EventLog, StoredEvent
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE, TENANT
from fleet.core.desired_state import STATUS
from fleet.core.query.fields import DEVICE_FIELDS
from fleet.core.query.parser import parse
from fleet.ground.errors import Fenced
from fleet.roles.control.access import milliseconds
from fleet.wire.operator_calls import IN_SESSION, OFFLINE
from fleet.wire.property_states import POLICIES
from tests.support.job_site import NOW
from tests.support.memory_store import memory_store
from tests.support.state_site import TOOLS_OF, StateSite

VOLUME = TOOLS_OF["volume"]
LAMP = "self.lamp.turn_on"
OTHER_TENANT = 2


@pytest.fixture
async def site(database: Database) -> StateSite:
    one = StateSite(database, await memory_store())
    await one.take_over()
    return one


async def news(site: StateSite) -> list[tuple[str, str]]:
    return [(one.kind, one.data) for one in await EventLog(site.database).after(0, 1_000)]


async def due_of(site: StateSite, mac: str) -> int:
    async with site.database.reading() as connection:
        found = select(DESIRED_STATE.c.due).where(DESIRED_STATE.c.mac == mac_number(mac))
        return int((await connection.execute(found)).scalar_one())


async def found_by(site: StateSite, query: str, tenant: int = 1) -> list[str]:
    condition = parse(query, DEVICE_FIELDS, datetime.now(UTC))
    return [one.mac for one in (await DeviceSearch(site.database, tenant).page(condition)).devices]


async def test_a_desired_value_is_set_read_back_once_and_confirmed(site: StateSite) -> None:
    mac, other = await site.add_stubs(2)
    begun = milliseconds()
    await site.desire(mac, volume=40, theme="dark", tools={LAMP: {"level": 3}})
    await site.settle()
    state = await site.state(mac)
    assert {name: one.state for name, one in state.properties.items()} == {
        "volume": "confirmed",
        "theme": "confirmed",
        f"tools.{LAMP}": "sent",
    }
    assert state.reported == {"volume": 40, "theme": "dark"} and state.reported_at > 0
    device = site.stubs[mac]
    assert device.asked == Counter([VOLUME, TOOLS_OF["theme"], LAMP, STATUS])
    assert not site.stubs[other].asked, "nobody desires anything of it"
    assert begun + BUSY_MS < await due_of(site, mac) <= milliseconds() + 6 * 3_600_000 * 1.2
    kinds = [kind for kind, _ in await news(site)]
    assert kinds == ["state.changed", "state.confirmed"]
    assert await site.waiting_calls() == []


async def test_an_offline_device_is_set_after_it_connects_and_what_the_server_keeps_at_once(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.connect([mac], online=False)
    await site.desire(mac, volume=40, timezone="Europe/Berlin", language="de")
    await site.settle()
    state = await site.state(mac)
    assert {name: one.state for name, one in state.properties.items()} == {
        "volume": "pending",
        "timezone": "confirmed",
        "language": "confirmed",
    }
    assert await due_of(site, mac) == NEVER
    keys = site.store.keys
    assert await site.store.client.hget(admission_key(site.store, mac), "tz") == "Europe/Berlin"
    assert await site.store.client.hget(keys.persona(mac), "language") == "de"
    await site.connect([mac])
    begun = milliseconds()
    site.keeper.notice([StoredEvent(1, 1, NOW, "device.online", mac_number(mac), "{}")])
    await site.settle()
    due = await due_of(site, mac)
    assert begun < due <= milliseconds() + 14_000, "after it has told its tools, at no fixed time"
    await site.look_now(mac)
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "confirmed"


async def test_a_device_whose_connection_nobody_told_is_found(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.connect([mac], online=False)
    await site.desire(mac, volume=40)
    await site.settle()
    assert await due_of(site, mac) == NEVER and await site.keeper.sweep(site.states, -1) is None
    assert await due_of(site, mac) < NEVER, "the registry has it as connected"


async def test_a_user_turns_the_knob(site: StateSite) -> None:
    macs = await site.add_stubs(3)
    for mac, policy in zip(macs, POLICIES, strict=True):
        await site.desire(mac, {"volume": policy}, volume=70)
    await site.settle()
    for mac in macs:
        site.stubs[mac].values["volume"] = 90
        site.stubs[mac].asked.clear()
        await site.look_now(mac)
    await site.settle()
    states = [(await site.state(mac)).properties["volume"].state for mac in macs]
    assert states == ["changed", "drift", "drift"]
    assert await found_by(site, "drift") == macs[1:] == await found_by(site, "NOT drift=false")
    assert await found_by(site, "-drift") == macs[:1] == await found_by(site, "drift!=true")
    assert [one.mac for one in await DesiredRows(site.database, 1).drifting(-1, 9)] == macs[1:]
    await site.look_now(macs[1])
    await site.settle()
    assert [(await site.state(mac)).properties["volume"].state for mac in macs] == ["changed", "confirmed", "drift"]
    assert [site.stubs[mac].asked[VOLUME] for mac in macs] == [0, 1, 0]
    assert await found_by(site, "drift AND online") == macs[2:]
    kinds = Counter(kind for kind, _ in await news(site))
    assert kinds == {"state.changed": 7, "state.confirmed": 4, "state.drift": 2}


async def test_enforce_gives_up_after_three_corrections_and_tells_it_once(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, {"volume": "enforce"}, volume=70)
    await site.settle()
    for _ in range(8):
        site.stubs[mac].values["volume"] = 90
        await site.look_now(mac)
        await site.settle()
        await site.look_now(mac)
        await site.settle()
    assert site.stubs[mac].asked[VOLUME] == 1 + 3
    state = await site.state(mac)
    assert (state.properties["volume"].state, state.properties["volume"].given_up) == ("drift", True)
    kinds = Counter(kind for kind, _ in await news(site))
    assert kinds["alert.drift"] == 1
    assert await due_of(site, mac) - milliseconds() > 3_600_000, "nobody asks more often because of it"


async def test_two_writers_and_the_second_is_refused(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    first = await site.desire(mac, version=0, volume=40)
    with pytest.raises(VersionConflict):
        await site.desire(mac, version=0, volume=50)
    assert (first.version, (await site.state(mac)).properties["volume"].value) == (1, 40)
    assert (await site.desire(mac, version=1, volume=50)).version == 2
    with pytest.raises(TooManyProperties):
        await site.desire(mac, tools={f"self.lamp.t{number}": {} for number in range(17)})


async def test_a_change_during_a_round_is_done_in_the_next_one(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40)
    await site.keeper.step(site.states)
    await site.desire(mac, volume=50)
    await site.settle()
    state = (await site.state(mac)).properties["volume"]
    assert (state.value, state.state) == (50, "pending") and site.stubs[mac].values["volume"] == 40
    await site.look_now(mac)
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "confirmed" and site.stubs[mac].values["volume"] == 50


async def test_a_device_in_a_session_is_left_alone(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.store.client.hset(site.store.keys.session(mac), "id", "s")
    begun = milliseconds()
    await site.desire(mac, volume=40)
    await site.settle()
    assert not site.stubs[mac].asked
    assert begun + BUSY_MS - 5_000 < await due_of(site, mac) <= milliseconds() + 2 * BUSY_MS
    await site.store.client.delete(site.store.keys.session(mac))
    site.stubs[mac].answers[VOLUME] = ("not_sent", IN_SESSION)
    await site.look_now(mac)
    await site.keeper.step(site.states)
    calls = [call for _, _, call in await site.waiting_calls()]
    assert [(call.tool, call.idle) for call in calls] == [(VOLUME, True), (STATUS, True)]
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "pending"
    assert await due_of(site, mac) < NEVER
    site.stubs[mac].answers[VOLUME] = ("not_sent", OFFLINE)
    await site.look_now(mac)
    await site.settle()
    assert await due_of(site, mac) == NEVER


async def test_a_device_without_screen_is_unsupported_until_it_has_one(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1, [STATUS, VOLUME])
    await site.desire(mac, {"brightness": "watch"}, theme="dark", brightness=5)
    await site.settle()
    state = await site.state(mac)
    assert {one.state for one in state.properties.values()} == {"unsupported"}
    assert await found_by(site, "drift") == [] and site.refreshed == [mac], "the copy may be old"
    assert set(site.stubs[mac].asked) == {STATUS}
    assert [kind for kind, _ in await news(site)] == ["state.refused", "state.changed", "state.refused"]


async def test_a_device_whose_tools_are_not_known_yet_is_asked_later(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    async with site.database.writing() as connection:
        await connection.execute(update(DEVICE).values(tool_list=None))
    begun = milliseconds()
    await site.desire(mac, volume=40)
    await site.settle()
    assert site.refreshed == [mac] and not site.stubs[mac].asked
    assert begun + 30_000 < await due_of(site, mac) <= milliseconds() + 60_000


async def test_after_somebody_else_set_it_the_device_is_read_once(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40)
    await site.settle()
    read, quiet = (await site.state(mac)).reported_at, await due_of(site, mac)

    def called(at: int, tool: str = VOLUME, outcome: str = "ok") -> StoredEvent:
        data = f'{{"tool":"{tool}","outcome":"{outcome}","ms":5,"turn":"t"}}'
        return StoredEvent(1, 1, at, "tool.called", mac_number(mac), data)

    site.keeper.notice([called(read), called(read + 9, STATUS), called(read + 9, VOLUME, "error")])
    await site.settle()
    assert await due_of(site, mac) == quiet, "its own call, and calls that set nothing"
    site.stubs[mac].values["volume"] = 55
    site.keeper.notice([called(read + 5), called(read + 6)])
    await site.settle()
    assert await due_of(site, mac) <= milliseconds() + 2_000, "debounced"
    await site.look_now(mac)
    await site.settle()
    state = await site.state(mac)
    assert (state.reported, state.properties["volume"].state) == ({"volume": 55}, "changed")
    assert site.stubs[mac].asked == {VOLUME: 1, STATUS: 2}


async def test_a_set_during_a_round_makes_its_answer_outdated(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40)
    await site.keeper.step(site.states)
    data = f'{{"tool":"{VOLUME}","outcome":"ok"}}'
    site.keeper.notice([StoredEvent(1, 1, milliseconds() + 60_000, "tool.called", mac_number(mac), data)])
    await site.settle()
    assert await due_of(site, mac) <= milliseconds() + 2_000


async def test_killed_between_a_round_and_its_calls_the_next_leader_ends_it_and_tries_again(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40, tools={LAMP: {}})
    await site.keeper.step(site.states)
    for shard, _, call in await site.waiting_calls():
        await site.store.client.delete(site.store.keys.operator_call(mac, call.call))
        await site.store.client.delete(site.store.keys.operator_calls(shard))
    await site.take_over()
    assert site.states.under_way == {mac_number(mac)}
    await site.look_now(mac)
    await site.keeper.step(site.states)
    state = await site.state(mac)
    assert {name: one.state for name, one in state.properties.items()} == {
        "volume": "pending",
        f"tools.{LAMP}": "unknown",
    }, "what cannot be read back is never sent a second time"
    await site.look_now(mac)
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "confirmed"
    assert site.stubs[mac].asked == {VOLUME: 1, STATUS: 1}


async def test_an_earlier_lease_changes_nothing_and_its_outcomes_are_not_lost(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40)
    await site.keeper.step(site.states)
    old = site.states
    await site.answer(lambda call: site.stubs[call.device].answer(call))
    await site.take_over()
    with pytest.raises(Fenced):
        await old.step()
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "confirmed"
    assert site.stubs[mac].asked == {VOLUME: 1, STATUS: 1}


async def test_another_tenant_sees_nothing_and_takes_a_device_without_what_was_desired(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, {"volume": "watch"}, volume=40)
    await site.settle()
    async with site.database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=OTHER_TENANT, slug="other", name="", created=0))
    theirs = DesiredRows(site.database, OTHER_TENANT)
    assert (await theirs.read(mac)).version == 0 and await theirs.drifting(-1, 9) == []
    assert await theirs.change(mac, {"volume": 1}, {}, NOW) is None
    assert await found_by(site, "drift", OTHER_TENANT) == [] and await found_by(site, "drift") == [mac]
    assert await DeviceMoves(site.database).move(mac, 1, OTHER_TENANT)
    assert (await theirs.read(mac)).version == 0 and (await site.state(mac)).version == 0


async def test_a_forgotten_device_leaves_no_row_and_one_without_readable_properties_rests(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, tools={LAMP: {}})
    await site.settle()
    assert await due_of(site, mac) == RESTING and site.stubs[mac].asked == {LAMP: 1}
    await DeviceRows(site.database, 1).forget(mac)
    assert (await site.state(mac)).version == 0


async def test_without_a_poll_a_device_rests_until_it_connects(database: Database) -> None:
    site = StateSite(database, await memory_store(), poll_hours=0)
    await site.take_over()
    (mac,) = await site.add_stubs(1)
    await site.desire(mac, volume=40)
    await site.settle()
    assert await due_of(site, mac) == RESTING
    site.keeper.notice([StoredEvent(1, 1, NOW, "device.online", mac_number(mac), "{}")])
    await site.settle()
    assert await due_of(site, mac) < NEVER


async def test_calls_that_find_no_room_are_tried_again(site: StateSite) -> None:
    (mac,) = await site.add_stubs(1)
    site.states._calls.most_queued = 1
    await site.desire(mac, volume=40)
    await site.settle()
    assert site.stubs[mac].asked == {VOLUME: 1}
    assert (await site.state(mac)).properties["volume"].state == "sent", "it was set, and not read back yet"
    site.states._calls.most_queued = 9
    await site.look_now(mac)
    await site.settle()
    assert (await site.state(mac)).properties["volume"].state == "confirmed"
