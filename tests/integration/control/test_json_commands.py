"""With `--json`, commands that change something print what control answered."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.sql.database import Database, database_url
from fleet.core.memory import MemoryChanges
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import control_stage
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite

MAC, STRANGER = "02:00:00:00:00:01", "02:00:00:00:00:99"
POWER_CYCLE = "the device must be switched off and on"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def operator(fleet: CommandLine, tmp_path: Path) -> AsyncIterator[Operator]:
    database = Database(database_url(await migrated_sqlite(tmp_path / "control.db")))
    store = await memory_store()
    async with control_stage(database, store, tmp_path) as stage:
        yield Operator(fleet, stage)
    await store.close()
    await database.close()


async def test_changes_of_the_registry_print_the_device(operator: Operator) -> None:
    made = await operator.row("devices", "register", MAC, "--name", "Kitchen")
    assert (made["mac"], made["name"], made["state"]) == (MAC, "Kitchen", "registered")
    tagged = await operator.row("devices", "tag", MAC, "site=berlin")
    assert tagged["tags"] == {"site": "berlin"}
    changed = await operator.row("devices", "change", MAC, "--notes", "by the door")
    assert (changed["notes"], changed["version"]) == ("by the door", tagged["version"] + 1)
    (exported,) = map(json.loads, (await operator.run("devices", "export", "--json")).splitlines())
    assert exported["mac"] == MAC
    assert await operator.row("devices", "move", MAC, "other") == {"mac": MAC, "changed": True, "note": ""}


async def test_decisions_about_devices_print_their_outcome(operator: Operator) -> None:
    async def claimed(client: str) -> None:
        store = operator.stage.services.store
        await Admissions(store).decide("first", BootstrapAsker(MAC, client, "192.0.2.1"), {})
        await Claims(store).note(MAC, "192.0.2.1")

    row = operator.row
    assert await row("devices", "bind", MAC) == {"mac": MAC, "changed": True, "note": ""}
    for client in ("owner", "second"):
        await claimed(client)
    accepted = await row("devices", "accept", MAC, "second", "--now")
    assert accepted == {"mac": MAC, "changed": True, "note": POWER_CYCLE}
    await claimed("third")
    for verb, note in (("refuse", ""), ("revoke", ""), ("unrevoke", POWER_CYCLE), ("unbind", POWER_CYCLE)):
        assert await row("devices", verb, MAC) == {"mac": MAC, "changed": True, "note": note}, verb
    assert not (await row("devices", "unbind", MAC))["changed"]
    assert (await row("devices", "debug", MAC, "--minutes", "1"))["mac"] == MAC
    assert await row("devices", "forget", MAC) == {"mac": MAC, "changed": True, "note": ""}


async def test_changes_of_groups_print_the_group(operator: Operator) -> None:
    await operator.run("devices", "register", MAC)
    made = await operator.row("groups", "add", "vip", "--notes", "upstairs")
    assert (made["name"], made["kind"], made["notes"]) == ("vip", "static", "upstairs")
    assert await operator.row("groups", "include", "vip", MAC) == {"name": "vip", "changed": 1, "unknown": []}
    assert await operator.row("groups", "exclude", "vip", MAC) == {"name": "vip", "changed": 1, "unknown": []}
    printed = await operator.run("groups", "include", "vip", STRANGER, "--json", code=1)
    document, rest = json.JSONDecoder().raw_decode(printed)
    assert document == {"groups": [{"name": "vip", "changed": 0, "unknown": [STRANGER]}]}
    assert printed[rest:].strip() == f"{STRANGER} is unknown", "on the standard error"
    assert await operator.row("groups", "remove", "vip") == made


async def test_what_devices_forget_is_printed(operator: Operator) -> None:
    await operator.run("devices", "register", MAC)
    store, facts = operator.stage.services.store, ("Anna likes tea.", "她有一只猫。")
    lease = await Leases(store, "w", 60).take(store.keys.shard(MAC))
    assert lease is not None
    await Memories(store).change(lease, MAC, MemoryChanges(facts))
    assert await operator.rows("memory", "forget", MAC, "她") == [{"fact": facts[1]}]
    assert await operator.rows("memory", "clear", MAC) == [{"mac": MAC, "count": 1}]


async def test_refusals_stay_on_the_standard_error(operator: Operator) -> None:
    refused = await operator.run("groups", "remove", "vip", "--json", code=2)
    assert refused == "fleet: there is no group vip\n"


async def test_control_is_asked_whether_it_is_ready(operator: Operator, fleet: CommandLine) -> None:
    url = f"{operator.stage.client.base_url}".rstrip("/")
    ready = await operator.row("health", "--url", f"{url}/readyz", "--limit", "240")
    assert ready == {"url": f"{url}/readyz", "ready": True, "answer": '200 {"status":"ready"}'}
    missing = json.loads(await operator.run("health", "--url", f"{url}/nothing", "--limit", "240", "--json", code=1))
    assert missing["roles"][0]["ready"] is False
    assert (await operator.row("version"))["package"] == "fleet-voice"


def test_files_that_are_written_are_named(fleet: CommandLine, tmp_path: Path) -> None:
    def row(*words: str) -> dict[str, str]:
        done = fleet.run(*words, "--json", FLEET_DATA_DIR=str(tmp_path))
        assert done.returncode == 0, done
        ((found, *_),) = json.loads(done.stdout).values()
        return dict(found)

    copy = tmp_path / "copy.db"
    assert row("db", "upgrade")["revision"]
    assert row("db", "backup", str(copy)) == row("db", "restore", str(copy)) == {"path": str(copy)}
    written = Path(row("certs", "dev", "voice.test", "--dir", str(tmp_path / "certs"))["path"])
    assert written.parent == tmp_path / "certs" and written.exists()
