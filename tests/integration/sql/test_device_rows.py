"""Changes of devices, on both kinds of database."""

import asyncio

import pytest
from sqlalchemy import insert

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_rows import DeviceChange, DeviceRows, NewDevice, VersionConflict
from fleet.adapters.sql.schema import TENANT

MAC, SECOND = "02:00:00:00:00:01", "02:00:00:00:00:02"
MINE, OTHER = 1, 2


@pytest.fixture
async def rows(database: Database) -> DeviceRows:
    async with database.writing() as connection:
        await connection.execute(insert(TENANT), {"id": OTHER, "slug": "other", "name": "Other", "created": 0})
    return DeviceRows(database, MINE)


async def test_a_registered_device_is_read_as_it_was_written(rows: DeviceRows) -> None:
    new = NewDevice(MAC, "Küche", "by the door", "SN1", {"room": [1, None]}, {"site": "berlin"})
    assert await rows.add([new, NewDevice(SECOND)]) == []
    read = await rows.read(MAC)
    assert read is not None
    assert (read.mac, read.name, read.notes, read.serial, read.agent) == (MAC, "Küche", "by the door", "SN1", "")
    assert (read.attributes, read.tags, read.version, read.online) == (
        {"room": [1, None]},
        {"site": "berlin"},
        1,
        False,
    )
    assert await rows.tools(MAC) == await rows.groups(MAC) == []


async def test_a_device_is_registered_once(database: Database, rows: DeviceRows) -> None:
    await rows.add([NewDevice(MAC, "first")])
    assert await rows.add([NewDevice(MAC, "second"), NewDevice(SECOND)]) == [MAC]
    assert await DeviceRows(database, OTHER).add([NewDevice(MAC, "third")]) == [MAC]
    read = await rows.read(MAC)
    assert read is not None
    assert read.name == "first"


async def test_a_change_changes_what_it_names(rows: DeviceRows) -> None:
    await rows.add([NewDevice(MAC, "a", "b", tags={"site": "berlin", "floor": "1"})])
    changed = await rows.change(MAC, DeviceChange(notes="", tags={"site": "oslo"}), version=1)
    assert changed is not None
    before, after = changed
    assert (before.notes, before.tags, before.version) == ("b", {"floor": "1", "site": "berlin"}, 1)
    assert (after.name, after.notes, after.tags, after.version) == ("a", "", {"site": "oslo"}, 2)
    assert await rows.read(MAC) == after


async def test_of_two_who_change_the_same_version_one_is_refused(rows: DeviceRows) -> None:
    await rows.add([NewDevice(MAC)])
    changes = [rows.change(MAC, DeviceChange(name=name), version=1) for name in "ab"]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_outcome(change)) for change in changes]
    assert sorted(task.result() for task in tasks) == ["changed", "refused"]


async def _outcome(change: object) -> str:
    try:
        await change  # type: ignore[misc]  # a coroutine
    except VersionConflict:
        return "refused"
    return "changed"


async def test_the_devices_of_another_tenant_do_not_exist(database: Database, rows: DeviceRows) -> None:
    await rows.add([NewDevice(MAC)])
    others = DeviceRows(database, OTHER)
    assert await others.read(MAC) is None
    assert await others.change(MAC, DeviceChange(name="x")) is None
    assert await others.forget(MAC) is False
    assert await rows.forget(MAC) is True
    assert await rows.read(MAC) is None


async def test_a_failed_change_leaves_nothing(rows: DeviceRows, monkeypatch: pytest.MonkeyPatch) -> None:
    await rows.add([NewDevice(MAC, "a", tags={"site": "berlin"})])

    async def fail(*_: object) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr(rows, "_set_tags", fail)
    with pytest.raises(RuntimeError):
        await rows.change(MAC, DeviceChange(name="b", tags={}))
    read = await rows.read(MAC)
    assert read is not None
    assert (read.name, read.tags, read.version) == ("a", {"site": "berlin"}, 1)
