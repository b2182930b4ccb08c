"""`fleet events`, `fleet conversations` and `fleet usage`, and the client under them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.adapters.redis.shards.events import Outbox
from fleet.adapters.sql.database import Database, database_url
from fleet.client import events as calls
from fleet.client.client import AsyncFleetClient
from fleet.ground.tasks import running
from fleet.roles.control.leader.event_collector import EventCollector
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, ControlStage, control_stage
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite

MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ControlStage]:
    """A running control with SQLite, and one conversation."""
    database = Database(database_url(await migrated_sqlite(tmp_path / "control.db")))
    store = await memory_store()
    async with control_stage(database, store, tmp_path) as one, running("followers", one.services.following.run):
        await happen(
            one, "turn.answered", '{"turn":"t1","session":"s","user":"Hi?","answer":"Hello.","input_tokens":7}'
        )
        yield one
    await store.close()
    await database.close()


async def happen(stage: ControlStage, kind: str, data: str, fence: int = 1) -> None:
    store, shards = stage.services.store, range(stage.services.store.keys.shards)
    offer = stage.services.following.tail.offer
    collector = EventCollector(Outbox(store), stage.database, _copied, offer, shards)
    await collector.begin(fence)
    key = store.keys.events(store.keys.shard(MAC))
    await store.client.execute_command("XADD", key, "*", "k", kind, "m", MAC, "d", data)
    await collector.step()


async def _copied(_: object) -> int:
    return 0


async def test_history_is_shown_exported_and_deleted(fleet: CommandLine, stage: ControlStage) -> None:
    async def run(*words: str) -> str:
        url = str(stage.client.base_url)
        done = await asyncio.to_thread(fleet.run, *words, FLEET_CONTROL_URL=url, FLEET_CONTROL_TOKEN=FULL)
        assert done.returncode == 0, (words, done)
        return done.stdout

    (event,) = map(json.loads, (await run("events", "--kinds", "turn", "--json")).splitlines())
    assert (event["kind"], event["device"], event["data"]["turn"]) == ("turn.answered", MAC, "t1")
    assert await run("events", "--after", "1") == ""
    (talk,) = json.loads(await run("conversations", "list", "--words", "HELLO", "--json"))["conversations"]
    assert (talk["device"], talk["turns"]) == (MAC, 1)
    assert "Hello." in await run("conversations", "show", str(talk["id"]))
    for words in ((), ("--json",)):
        assert json.loads(await run("conversations", "export", *words))["answer"] == "Hello."
    (sums,) = json.loads(await run("usage", "--by", "device", "--json"))["usage"]
    assert (sums["device"], sums["turns"], sums["input_tokens"]) == (MAC, 1, 7)
    words = ("conversations", "redact", str(talk["id"]), "1", "--answer")
    assert "taken back of turn 1: answer" in await run(*words)
    assert "(redacted)" in (shown := await run("conversations", "show", str(talk["id"]))) and "Hi?" in shown
    assert "deleted" in await run("conversations", "delete", str(talk["id"]))
    assert "0 conversations, 1 event" in await run("conversations", "erase", MAC)
    await happen(stage, "turn.answered", '{"turn":"t2","session":"s","user":"Yes?","answer":"No."}', fence=2)
    (talk,) = json.loads(await run("conversations", "list", "--json"))["conversations"]
    gone = json.loads(await run("conversations", "delete", str(talk["id"]), "--json"))
    assert gone == {"conversations": [{"id": talk["id"]}]}
    (erased,) = json.loads(await run("conversations", "erase", MAC, "--json"))["devices"]
    assert erased == {"mac": MAC, "conversations": 0, "events": 1, "usage": 1}


async def test_what_is_said_on_a_device_is_an_object_a_line(fleet: CommandLine, stage: ControlStage) -> None:
    await stage.ask("POST /v1/devices", json={"mac": MAC})
    store = stage.services.store
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fleet", "conversations", "watch", MAC, "--json"),
        env=os.environ | Operator(fleet, stage).environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    try:
        async with asyncio.timeout(240):
            while not await store.client.exists(store.keys.transcript(MAC)):
                await asyncio.sleep(0.02)
            lines = [
                ("turn.heard", {"turn": "t", "text": "他好?"}),
                ("turn.ended", {"turn": "t", "outcome": "answered"}),
            ]
            await Transcripts(store).write(MAC, lines)
            found = [json.loads(await process.stdout.readline()) for _ in lines]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    assert [(one["kind"], one["device"], one["data"]) for one in found] == [
        (kind, MAC, data) for kind, data in lines
    ]  # fmt: skip


async def test_a_program_follows_events_from_where_it_was(stage: ControlStage) -> None:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as client:
        stream = calls.follow(client, kinds="turn", after=0)
        number, kind, data = await anext(stream)
        assert (number, kind, json.loads(data)["data"]["user"]) == (1, "turn.answered", "Hi?")
        await happen(stage, "turn.failed", '{"turn":"t2"}', fence=2)
        async with asyncio.timeout(240):
            assert (await anext(stream))[:2] == (2, "turn.failed")
        await stream.aclose()  # type: ignore[attr-defined]
