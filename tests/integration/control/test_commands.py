"""`fleet devices` and `fleet groups` over control, and beside it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.schema import AUDIT
from fleet.wire.reminders import Reminder
from tests.support.command_line import CommandLine, Done, command_line
from tests.support.control_server import FULL, ControlStage, control_stage
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite

MAC, SECOND = "02:00:00:00:00:01", "02:00:00:00:00:02"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def small_stage(tmp_path: Path) -> AsyncIterator[ControlStage]:
    """A running control with SQLite."""
    database = Database(database_url(await migrated_sqlite(tmp_path / "control.db")))
    store = await memory_store()
    async with control_stage(database, store, tmp_path) as running:
        yield running
    await store.close()
    await database.close()


async def test_reminders_are_shown_and_cancelled_over_control(fleet: CommandLine, small_stage: ControlStage) -> None:
    async def run(*words: str, code: int = 0) -> str:
        url = str(small_stage.client.base_url)
        done: Done = await asyncio.to_thread(fleet.run, *words, FLEET_CONTROL_URL=url, FLEET_CONTROL_TOKEN=FULL)
        assert done.returncode == code, (words, done)
        return done.stdout + done.stderr

    store = small_stage.services.store
    await run("devices", "register", MAC)
    assert json.loads(await run("reminders", "show", MAC, "--json")) == {"reminders": []}
    assert "has no reminder 'r1'" in await run("reminders", "cancel", MAC, "r1", code=2)
    owner = await Leases(store, "w", 60).take(store.keys.shard(MAC))
    assert owner is not None
    await Reminders(store).add(owner, MAC, Reminder(id="r1", text="Call Anna.", due=4_000_000_000_000))
    assert "Call Anna." in await run("reminders", "show", MAC)
    assert await run("reminders", "cancel", MAC, "r1") == f"reminder r1 of {MAC} cancelled\n"
    assert await Reminders(store).read(MAC) == []


async def test_devices_and_groups_are_managed_over_control(
    fleet: CommandLine, small_stage: ControlStage, tmp_path: Path
) -> None:
    async def run(*words: str, code: int = 0) -> str:
        url = str(small_stage.client.base_url)
        done: Done = await asyncio.to_thread(fleet.run, *words, FLEET_CONTROL_URL=url, FLEET_CONTROL_TOKEN=FULL)
        assert done.returncode == code, (words, done)
        return done.stdout + done.stderr

    store = small_stage.services.store
    assert await run("devices", "register", MAC.upper(), "--name", "Kitchen") == f"{MAC} is registered\n"
    assert "registered already" in await run("devices", "register", MAC, code=2)
    assert "site=berlin" in await run("devices", "tag", MAC, "site=berlin", "floor=")
    await run("devices", "tag", MAC, "site", code=2)
    await run("devices", "change", MAC, "--notes", "by the door")
    found = json.loads(await run("devices", "search", "tag.site=berlin", "--json"))["devices"]
    assert [(one["mac"], one["notes"], one["tags"]) for one in found] == [(MAC, "by the door", {"site": "berlin"})]
    assert "filter, at character 7" in await run("devices", "search", "online=maybe", code=2)
    assert "Kitchen" in await run("devices", "search") and "Kitchen" in await run("devices", "show", MAC)
    assert "no such device" in await run("devices", "show", SECOND, code=2)
    assert await run("devices", "bind", MAC) == f"{MAC} is bound\n"
    assert (await Admissions(store).read(MAC)).bound
    assert "queued" in await run("devices", "call", MAC, "self.get_system_info", "--wait", "0")
    assert "url" in await run("devices", "call", MAC, "self.upgrade_firmware", code=2)
    assert "offline" in await run("devices", "say", MAC, "hello", code=2)
    assert json.loads(await run("memory", "show", MAC, "--json")) == {"facts": []}
    pending = await Activations(store).begin(SECOND, "c1", "", with_code=True)
    await TraceStore(store).record_refusal(SECOND, "not bound")
    assert pending.code in await run("devices", "waiting")
    assert await run("devices", "bind", f"{pending.code[:3]} {pending.code[3:]}") == f"{SECOND} is bound\n"
    assert f"{SECOND} is revoked\n" == await run("devices", "revoke", SECOND)
    assert json.loads(await run("devices", "counts", "--by", "state", "--json"))["counts"][0]["field"] == "state"
    await run("groups", "add", "vip")
    assert "1 device added" in await run("groups", "include", "vip", MAC)
    assert await run("groups", "include", "vip", "02:00:00:00:00:99", code=1)
    assert json.loads(await run("groups", "members", "vip", "--json"))["members"][0]["device"] == MAC
    assert "1 device removed" in await run("groups", "exclude", "vip", MAC)
    await run("groups", "remove", "vip")
    assert json.loads(await run("groups", "list", "--json")) == {"groups": []}
    file = tmp_path / "devices.csv"
    file.write_text(await run("devices", "export"), encoding="utf-8")
    assert "0 added, 0 changed, 2 unchanged, 0 errors" in await run("devices", "import", str(file))
    file.write_text("mac,name\nnonsense,x\n", encoding="utf-8")
    assert "line 2: mac: " in await run("devices", "import", str(file), code=1)
    assert await run("devices", "forget", MAC) == f"{MAC} is forgotten\n"


async def test_without_control_a_command_changes_redis_and_writes_an_audit_line(
    fleet: CommandLine, tmp_path: Path, redis_url: str
) -> None:
    address = await migrated_sqlite(tmp_path / "control.db")
    database = Database(database_url(address))
    settings = {"FLEET_REDIS_URL": redis_url, "FLEET_CONTROL_URL": "http://127.0.0.1:9", "FLEET_DATABASE_URL": address}
    run: Callable[..., Done] = fleet.run
    silent = await asyncio.to_thread(run, "devices", "revoke", MAC, **settings, FLEET_CONTROL_TOKEN="flt_x")
    assert silent.returncode == 1 and "does not answer" in silent.stderr
    done = await asyncio.to_thread(run, "devices", "revoke", MAC, "--direct", **settings)
    assert (done.returncode, done.stdout) == (0, f"{MAC} is revoked\n"), done
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.smembers("{revoked}:macs") == {MAC}
    async with database.reading() as connection:
        lines = (await connection.execute(select(AUDIT.c.action, AUDIT.c.object, AUDIT.c.actor))).all()
    await database.close()
    [(action, what, actor)] = lines
    assert (action, what) == ("device.revoke", f"device/{MAC}") and actor.startswith("command:")
