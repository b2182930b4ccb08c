"""The registry's copy of what Redis knows, on both kinds of database."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import insert, select

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.facts import FactReader
from fleet.adapters.redis.devices.forgetting import forget
from fleet.adapters.redis.devices.tools import pack_tools
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_copies import DeviceCopyRows
from fleet.adapters.sql.device_moves import DeviceMoves
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice, RegisteredDevice
from fleet.adapters.sql.device_search import DeviceSearch
from fleet.adapters.sql.presence_rows import PresenceRows
from fleet.adapters.sql.schema import PRESENCE, TENANT
from fleet.core.device_facts import DOCTOR, DeviceFacts
from fleet.core.query.conditions import FreeText
from fleet.ground.tasks import running
from fleet.roles.control.leader.device_copies import CopyPace, DeviceCopies
from fleet.wire.mcp import ToolSpec
from tests.support.memory_store import memory_store

MAC, SECOND, THIRD = (f"02:00:00:00:00:0{number}" for number in (1, 2, 3))
PROBE = f"{DOCTOR}:00:00:01"
MINE, OTHER = 1, 2
FIELDS = {"board": "bread-compact", "fw": "2.4.1", "lang": "zh-CN"}


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await memory_store()
    yield opened
    await opened.close()


@pytest.fixture
async def copies(store: Store, database: Database) -> DeviceCopies:
    return DeviceCopies(store, database)


async def tenant_in_redis(store: Store, mac: str) -> object:
    return await store.client.hget(store.keys.device(mac), "ten")


async def boot(store: Store, mac: str, policy: str = "first", client: str = "c1") -> None:
    await Admissions(store).decide(policy, BootstrapAsker(mac, client), FIELDS)  # type: ignore[arg-type]


async def read(database: Database, mac: str, tenant: int = MINE) -> RegisteredDevice:
    found = await DeviceRows(database, tenant).read(mac)
    assert found is not None, mac
    return found


async def test_a_device_that_bootstrapped_and_connected_is_copied(
    store: Store, database: Database, copies: DeviceCopies
) -> None:
    await boot(store, MAC)
    await Devices(store).appear(MAC, online=True, epoch=5)
    assert await copies.refresh([MAC, SECOND]) == 1
    row = await read(database, MAC)
    assert (row.board, row.firmware, row.language, row.client) == ("bread-compact", "2.4.1", "zh-CN", "c1")
    assert (row.state, row.online, row.tenant) == ("bound", True, MINE)
    assert row.first_seen and row.last_seen >= row.last_boot >= row.first_seen
    assert await DeviceRows(database, MINE).read(SECOND) is None, "nothing is known of it"
    assert await copies.refresh([MAC]) == 0, "nothing is different"
    await Devices(store).appear(MAC, online=True, epoch=6, user="device.k2.first.1")
    await copies.refresh([MAC])
    assert (await read(database, MAC)).key == "k2"


async def test_a_registered_device_keeps_its_tenant_and_what_people_wrote(
    store: Store, database: Database, copies: DeviceCopies
) -> None:
    async with database.writing() as connection:
        await connection.execute(insert(TENANT), {"id": OTHER, "slug": "other", "name": "Other", "created": 0})
    await DeviceRows(database, OTHER).add([NewDevice(MAC, "Kitchen", "by the door", "SN1", {}, {"a": "b"})])
    await Admissions(store).bind(MAC, "c1", "SN2")
    assert await copies.refresh([MAC]) == 1
    row = await read(database, MAC, OTHER)
    assert (row.name, row.notes, row.serial, row.tags) == ("Kitchen", "by the door", "SN2", {"a": "b"})
    assert (row.state, row.version) == ("bound", 1)
    page = await DeviceSearch(database, OTHER).page(FreeText("sn2"))
    assert [found.name for found in page.devices] == ["Kitchen"], "the new serial number is found"


async def test_the_devices_of_the_doctor_get_no_row(store: Store, database: Database, copies: DeviceCopies) -> None:
    await boot(store, PROBE)
    await Devices(store).appear(PROBE, online=True, epoch=5)
    assert await copies.refresh([PROBE, MAC]) == 0
    assert await copies.copy_all() == await copies.compare_presence() == 0
    assert await DeviceRows(database, MINE).read(PROBE) is None


async def test_presence_and_its_history_follow(store: Store, database: Database, copies: DeviceCopies) -> None:
    now = time.time_ns() // 1000
    for online, epoch in ((True, now), (True, now), (False, now), (True, now + 5_000_000)):
        await Devices(store).appear(MAC, online=online, epoch=epoch)
        await copies.refresh([MAC])
        assert (await read(database, MAC)).online is online
    history = await PresenceRows(database).read(MINE, MAC)
    assert [entry.online for entry in history] == [True, False, True]
    assert [entry.at for entry in history] == sorted((entry.at for entry in history), reverse=True)
    assert await PresenceRows(database).read(OTHER, MAC) == []


async def test_tools_are_copied_once_for_all_devices_with_the_same_list(
    store: Store, database: Database, copies: DeviceCopies
) -> None:
    tools = await pack_tools([ToolSpec(name=name, description="", input_schema={}) for name in ("b", "a")])
    for mac, pages in ((MAC, "digest"), (SECOND, "digest"), (THIRD, "")):
        await Devices(store).describe(mac, {"ep": "5", "tep": "5", "pg": pages})
        if mac != SECOND:
            await store.client.set(store.keys.tools(mac), tools)
    await copies.refresh([MAC, SECOND, THIRD])
    for mac in (MAC, SECOND, THIRD):
        assert await DeviceRows(database, MINE).tools(mac) == ["a", "b"], mac


async def test_states_are_copied(store: Store, database: Database, copies: DeviceCopies) -> None:
    await TraceStore(store).record_refusal(MAC, "not bound")
    await TraceStore(store).record_refusal(SECOND, "not on the list")
    await Revocations(store).add(THIRD)
    await copies.copy_all()
    states = [(await read(database, mac)).state for mac in (MAC, SECOND, THIRD)]
    assert states == ["waiting", "refused", "revoked"]
    await boot(store, SECOND)
    await Revocations(store).remove(THIRD)
    await store.client.delete("{refused}:bootstrap")
    await copies.copy_all()
    states = [(await read(database, mac)).state for mac in (MAC, SECOND, THIRD)]
    assert states == ["refused", "bound", "revoked"], "of the third nothing is known any more"


async def test_the_walk_finds_what_no_event_told(store: Store, database: Database, copies: DeviceCopies) -> None:
    macs = [f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(1_203)]
    for mac in macs[:1_200]:
        await Devices(store).describe(mac, {"ep": "1", "board": "b"})
        await store.client.zadd(store.keys.seen(store.keys.shard(mac)), {mac: 1_800_000_000})
    await Devices(store).appear(macs[1_200], online=True, epoch=1)
    await Admissions(store).bind(macs[1_201], "c")
    assert await copies.copy_all() == 1_202
    for mac in macs[:600]:
        await Devices(store).appear(mac, online=True, epoch=2)
    assert await copies.compare_presence() == 600
    for mac in macs[:500]:
        await Devices(store).appear(mac, online=False, epoch=2)
    assert await copies.compare_presence() == 500
    assert await copies.compare_presence() == await copies.copy_all() == 0


async def test_what_is_lost_in_redis_stays_in_the_registry(
    store: Store, database: Database, copies: DeviceCopies
) -> None:
    await boot(store, MAC)
    await Devices(store).appear(MAC, online=True, epoch=5)
    await copies.refresh([MAC])
    before = await read(database, MAC)
    await store.client.flushall()
    await copies.copy_all()
    after = await read(database, MAC)
    assert not after.online
    assert (after.board, after.state, after.last_seen, after.client) == (
        "bread-compact",
        "bound",
        before.last_seen,
        "c1",
    )


async def test_a_device_forgotten_while_it_is_copied_does_not_come_back(
    store: Store, database: Database, copies: DeviceCopies, monkeypatch: pytest.MonkeyPatch
) -> None:
    await boot(store, MAC)
    await Devices(store).appear(MAC, online=False, epoch=5)
    once = FactReader.read

    async def forget_after_reading(self: FactReader, *args: object) -> list[DeviceFacts]:
        facts = await once(self, *args)  # type: ignore[arg-type]
        await forget(store, [MAC])
        await DeviceRows(database, MINE).forget(MAC)
        return facts

    monkeypatch.setattr(FactReader, "read", forget_after_reading)
    await copies.refresh([MAC])
    assert await DeviceRows(database, MINE).read(MAC) is None


async def test_of_strangers_the_newest_stay(store: Store, database: Database) -> None:
    rows = DeviceCopyRows(database)
    facts = [DeviceFacts(MAC, "refused", stranger=True, last_boot=1), DeviceFacts(SECOND, "bound", last_boot=1)]
    await rows.write([*facts, DeviceFacts(THIRD, "refused", stranger=True, last_boot=2)], {})
    assert (await rows.drop_strangers(1), await rows.drop_strangers(1)) == (1, 0)
    known = [mac for mac in (MAC, SECOND, THIRD) if await DeviceRows(database, MINE).read(mac)]
    assert known == [SECOND, THIRD]


async def test_the_history_of_presence_is_bounded_by_time_and_number(database: Database) -> None:
    await DeviceRows(database, MINE).add([NewDevice(MAC)])
    values = [{"tenant": MINE, "mac": 0x020000000001, "at": at, "online": True} for at in range(1, 11)]
    async with database.writing() as connection:
        await connection.execute(insert(PRESENCE), values)
    rows = PresenceRows(database)
    assert (await rows.drop(4), await rows.drop(4), await rows.drop(0, most=5)) == (3, 0, 2)
    async with database.reading() as connection:
        assert sorted((await connection.execute(select(PRESENCE.c.at))).scalars()) == [6, 7, 8, 9, 10]


async def test_run_copies_what_changes_meanwhile(store: Store, database: Database) -> None:
    await Activations(store).begin(SECOND, "c", "", with_code=True)
    copies = DeviceCopies(store, database, CopyPace(look=0.01))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(copies.run())
        async with asyncio.timeout(240):
            await boot(store, MAC)
            await TraceStore(store).record_refusal(THIRD, "not bound")
            await _until(database, online=False)
            while await DeviceRows(database, MINE).read(THIRD) is None:
                await asyncio.sleep(0.01)
            await Devices(store).appear(MAC, online=True, epoch=5)
            await _until(database, online=True)
        task.cancel()


async def test_bootstraps_while_control_was_down_do_not_wait_for_the_slow_walk(
    store: Store, database: Database, copies: DeviceCopies
) -> None:
    seen, now = store.keys.seen(store.keys.shard(MAC)), time.time()
    for firmware, at in (("2.4.1", now - 7200), ("2.5.0", now - 1800)):
        await Devices(store).describe(MAC, {"ep": "1", "fw": firmware})
        await store.client.zadd(seen, {MAC: int(at)})
        if firmware == "2.4.1":
            await copies.refresh([MAC])
    async with (
        asyncio.timeout(240),
        running("copies", DeviceCopies(store, database, CopyPace(look=0.01, each=3600)).run),
    ):
        while (await read(database, MAC)).firmware != "2.5.0":
            await asyncio.sleep(0.01)


async def _until(database: Database, *, online: bool) -> None:
    while True:
        row = await DeviceRows(database, MINE).read(MAC)
        if row is not None and row.online is online:
            return
        await asyncio.sleep(0.01)


async def test_redis_learns_whose_a_device_is(store: Store, database: Database, copies: DeviceCopies) -> None:
    async with database.writing() as connection:
        await connection.execute(insert(TENANT).values(id=OTHER, slug="other", name="", created=1))
    for mac in (MAC, SECOND):
        await boot(store, mac)
    await copies.refresh([MAC, SECOND])
    assert await tenant_in_redis(store, MAC) is None, "that of the site has no name"
    await DeviceMoves(database).move(MAC, MINE, OTHER)
    await copies.refresh([MAC, SECOND, THIRD])
    assert (await tenant_in_redis(store, MAC), await tenant_in_redis(store, SECOND)) == (str(OTHER), None)
    await DeviceMoves(database).move(MAC, OTHER, MINE)
    await copies.refresh([MAC])
    assert await tenant_in_redis(store, MAC) == "0", "it is known that it is the site's"
