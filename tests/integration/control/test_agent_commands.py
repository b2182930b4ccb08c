"""`fleet agents`, `providers`, `audit`, `tokens` and `db compile`, over a running control."""

import json
import stat
import wave
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from fleet.adapters.files.operator_tokens import GATEWAY_CONNECT, OperatorTokens
from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.sealing import Sealer, new_key
from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.provider_rows import ProviderRows
from fleet.core.ports import USUAL, Llm, LlmEvent, LlmOptions, Message, TextDelta, ToolOffer
from fleet.wire.agents import CompiledAgent
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import control_stage
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite
from tests.support.openai_server import Answer, run_openai_server

MAC = "02:00:00:00:00:01"
SECRET = new_key()


class Parrot:
    """A model that says whose prompt it has."""

    async def find(self, agent: CompiledAgent) -> Llm:
        return self

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        yield TextDelta(f"My prompt: {messages[0].text.partition(chr(10))[0]}")


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def operator(fleet: CommandLine, tmp_path: Path) -> AsyncIterator[Operator]:
    database = Database(database_url(await migrated_sqlite(tmp_path / "control.db")))
    store = await memory_store()
    async with control_stage(database, store, tmp_path, Parrot(), secret_keys=SECRET) as stage:
        yield Operator(fleet, stage)
    await store.close()
    await database.close()


async def prompt(operator: Operator) -> str | None:
    """Return the prompt that a worker reads for the device."""
    store = operator.stage.services.store
    (digest,) = await CompiledAgents(store).of_devices([MAC])
    return (await KnownAgents(store).find(digest)).document.prompt


async def kept_key(operator: Operator) -> str:
    """Return the key of the only provider, as control keeps it."""
    (row,) = await ProviderRows(operator.stage.database, 1).page(0, 10)
    return Sealer(SECRET).unseal(row.secret) if row.secret else ""


async def test_an_agent_is_made_published_assigned_and_rolled_back(operator: Operator, tmp_path: Path) -> None:
    run = operator.run
    draft = tmp_path / "draft.toml"
    draft.write_text('prompt = "one"\nlanguage = "en"\n[voice]\nname = "onyx"\n', encoding="utf-8")
    (made,) = await operator.rows("agents", "create", "ann", "--file", str(draft), "--set", "voice.speed=1.5")
    assert made["draft"]["voice"] == {"name": "onyx", "speed": 1.5} and made["live"] == 0
    assert "draft.promt" in (refused := await run("agents", "create", "bob", "--set", "promt=x", code=2)) or (
        "there is no field promt" in refused
    )
    assert await run("agents", "try", "ann", "Who are you?") == "My prompt: one\n"
    assert "version 1 of ann counts" in await run("agents", "publish", "ann")
    await run("devices", "register", MAC)
    assert "name one of" in await run("agents", "assign", "ann", code=2)
    await run("agents", "assign", "ann", "--device", MAC)
    assert await prompt(operator) == "one"
    await run("agents", "edit", "ann", "--set", "prompt=two", "--unset", "voice.speed", "--notes", "ships")
    (shown,) = await operator.rows("agents", "show", "ann")
    assert (shown["draft"]["prompt"], shown["draft"]["voice"], shown["notes"]) == ("two", {"name": "onyx"}, "ships")
    assert "voice.name" in await run("agents", "show", "ann")
    assert "nothing to change" in await run("agents", "edit", "ann", code=2)
    await run("agents", "publish", "ann")
    assert await prompt(operator) == "two"
    await run("agents", "rollback", "ann", "1")
    assert await prompt(operator) == "one"
    assert [(one["number"], one["live"]) for one in await operator.rows("agents", "versions", "ann")] == [
        (2, False), (1, True)
    ]  # fmt: skip
    (given,) = await operator.rows("agents", "assignments")
    assert (given["agent"], given["device"], given["group"]) == ("ann", MAC, None)
    await run("agents", "unassign", "--device", MAC)
    assert await prompt(operator) is None
    await run("groups", "add", "vip")
    await run("groups", "include", "vip", MAC)
    await run("agents", "assign", "ann", "--group", "vip", "--rank", "5")
    await run("agents", "assign", "ann", "--site")
    assert await prompt(operator) == "one"
    (compiled,) = await operator.rows("db", "compile")
    assert compiled["agents"] == 1
    assert (await operator.row("agents", "remove", "ann"))["name"] == "ann"
    assert "there is no agent ann" in await run("agents", "publish", "ann", code=2)
    assert await operator.rows("agents", "list") == []


async def test_a_dry_run_says_who_has_an_agent_and_what_comes_in_its_place(operator: Operator) -> None:
    run = operator.run
    await run("agents", "create", "ann")
    await run("agents", "create", "bob")
    await run("devices", "register", MAC)
    await run("agents", "assign", "bob", "--site")
    await run("agents", "assign", "ann", "--device", MAC)
    told = await run("agents", "publish", "ann", "--dry-run")
    assert told == "1 device would change\n1 device: it has the agent itself\nfleet devices search 'agent=\"ann\"'\n"
    assert "more" not in await run("agents", "rollback", "ann", "1", "--dry-run")
    told = await run("agents", "remove", "ann", "--dry-run")
    assert "1 device would get bob" in told
    assert "1 device would get the settings of the server" not in told
    (found,) = await operator.rows("agents", "remove", "bob", "--dry-run")
    assert (found["changing"], found["instead"]) == (0, [])
    for words in (("publish", "ann"), ("remove", "ann")):
        assert "1 devices have this agent, and `most` is 0" in await run("agents", *words, "--most", "0", code=2)
    await run("agents", "publish", "ann", "--most", "1")
    assert "`most` is 0" in await run("agents", "rollback", "ann", "1", "--most", "0", code=2)
    await run("agents", "remove", "ann", "--most", "1")


async def test_a_group_with_an_agent_changes_after_a_dry_run_and_by_the_number_that_was_said(
    operator: Operator,
) -> None:
    run = operator.run
    await run("agents", "create", "ann")
    macs = [f"02:00:00:00:00:0{number}" for number in range(5)]
    for mac in macs:
        await run("devices", "register", mac)
    await run("groups", "add", "vip")
    await run("groups", "add", "rest", "--query", "online")
    await run("agents", "assign", "ann", "--group", "vip")
    await run("agents", "assign", "ann", "--group", "rest", "--rank", "-1")
    unknown = [f"02:00:00:00:{number // 256 + 1:02x}:{number % 256:02x}" for number in range(500)]
    (found,) = await operator.rows("groups", "include", "vip", *macs[:2], *unknown, *macs, "--dry-run")
    assert (found["devices"], found["changing"], found["query"]) == (5, 5, "")
    assert "5 devices of 5 would get another agent" in await run("groups", "include", "vip", *macs, "--dry-run")
    assert "--most is 4" in await run("groups", "include", "vip", *macs, "--most", "4", code=2)
    assert await operator.rows("groups", "members", "vip") == []
    assert (await operator.row("groups", "include", "vip", *macs, "--most", "5"))["changed"] == 5
    assert "--most is 1" in await run("groups", "exclude", "vip", *macs[:2], "--most", "1", code=2)
    told = await run("groups", "exclude", "vip", macs[0], "--dry-run")
    assert told.endswith(f"fleet devices search 'mac={macs[0]}'\n")
    assert (await operator.row("groups", "exclude", "vip", *macs[:2]))["changed"] == 2
    assert "3 devices of 3" in await run("groups", "remove", "vip", "--dry-run")
    assert "`most` is 2" in await run("groups", "remove", "vip", "--most", "2", code=2)
    new = ("groups", "change", "rest", "--query", "online=false")
    assert "2 devices of 5 would get another agent" in (told := await run(*new, "--dry-run"))
    assert "3 devices keep theirs: another of its groups goes before" in told
    assert "`most` is 1" in await run(*new, "--most", "1", code=2)
    assert (await operator.row(*new, "--rename", "away", "--notes", "n"))["query"] == "online=false"
    assert "0 devices of 0" in await run("groups", "change", "away", "--notes", "m", "--dry-run")
    assert "0 devices of 0" in await run("groups", "change", "vip", "--rename", "v", "--dry-run")
    await operator.row("groups", "change", "away", "--query", "online=false AND NOT group=vip", "--most", "3")
    assert "3 devices of 3" in await run("groups", "change", "vip", "--rename", "v", "--dry-run")
    assert "nothing to change" in await run("groups", "change", "away", code=2)
    await run("groups", "remove", "vip", "--most", "3")


async def test_the_key_of_a_provider_goes_in_by_a_file_and_never_comes_out(operator: Operator, tmp_path: Path) -> None:
    run, key = operator.run, tmp_path / "key"
    key.write_text("sk-first\n", encoding="utf-8")
    add = ("providers", "add", "house", "chat", "--base-url", "http://127.0.0.1:9/v1", "--key-file", str(key))
    assert await run(*add) == "house is added\n"
    assert await kept_key(operator) == "sk-first"
    key.write_text("sk-second", encoding="utf-8")
    await run("providers", "set-key", "house", str(key))
    assert await kept_key(operator) == "sk-second"
    key.write_text("two\nlines", encoding="utf-8")
    assert "one line" in await run("providers", "set-key", "house", str(key), code=2)
    listed = await run("providers", "list", "--json")
    assert "sk-" not in listed and json.loads(listed)["providers"][0]["has_key"]
    assert "did not answer" in await run("providers", "test", "house", code=1)
    await run("providers", "set-key", "house", "--clear")
    assert await kept_key(operator) == ""
    lines = await operator.rows("audit", "--object", "provider/1")
    assert [one["action"] for one in lines] == ["provider.change", "provider.change", "provider.create"]
    assert "sk-" not in await run("audit") and "provider.create" in await run("audit", "--limit", "9")
    exported = (await run("audit", "--action", "provider.create", "--export")).splitlines()
    assert [json.loads(line)["object"] for line in exported] == ["provider/1"]
    assert (await operator.row("providers", "remove", "house"))["has_key"] is False
    assert await operator.rows("providers", "list") == []


async def test_a_provider_is_changed_in_place_and_only_where_it_is_named(operator: Operator, tmp_path: Path) -> None:
    run, key = operator.run, tmp_path / "key"
    key.write_text("sk-first", encoding="utf-8")
    named = ("--base-url", "http://127.0.0.1:9/v1", "--voice", "onyx", "--voice", "ash", "--sample-rate", "16000")
    made = await operator.row("providers", "add", "house", "voice", *named)
    assert not made["has_key"]
    changed = await operator.row("providers", "change", "house", "--model", "large", "--key-file", str(key))
    assert changed == {**made, "model": "large", "has_key": True}
    moved = ("--base-url", "http://127.0.0.1:10/v1", "--sample-rate", "0", "--voice", "nova")
    assert "key" in await run("providers", "change", "house", *moved, code=2)
    moved += ("--key-file", str(key))
    assert await run("providers", "change", "house", *moved) == "house is changed\n"
    changed |= {"base_url": "http://127.0.0.1:10/v1", "sample_rate": 0, "voices": ["nova"]}
    assert await operator.rows("providers", "list") == [changed]
    assert (await operator.row("providers", "change", "house", "--voice", ""))["voices"] == [], "any voice"
    assert await kept_key(operator) == "sk-first"
    for words, reason in (
        ((), "nothing to change"),
        (("--base-url", ""), "needs base_url"),
        (("--base-url", "ftp://x"), "base_url: "),
        (("--key-file", str(tmp_path / "none")), "none"),
    ):
        assert reason in await run("providers", "change", "house", *words, code=2)
    assert "there is no provider barn" in await run("providers", "change", "barn", "--model", "x", code=2)
    assert "sk-" not in await run("audit", "--export")


async def test_a_voice_of_a_provider_is_written_to_a_file(operator: Operator, tmp_path: Path) -> None:
    with run_openai_server() as server:
        server.speech(Answer([b"\x00\x20" * 2_400], kind="audio/pcm"))
        await operator.row("providers", "add", "house", "voice", "--base-url", server.url)
        file = tmp_path / "hello.wav"
        said = await operator.run("providers", "speak", "house", "Hello", "--voice", "anna", "--out", str(file))
        assert "house began after" in said
        with wave.open(str(file)) as sound:
            assert (sound.getframerate(), sound.getnframes()) == (24_000, 2_400)
        assert server.requests[-1].json["voice"] == "anna"


async def test_tokens_are_made_by_control_and_those_of_other_roles_in_the_file(operator: Operator) -> None:
    run = operator.run
    asked = ("tokens", "new", "--scope", "devices:read", "--expires", "2099-01-01T00:00:00Z")
    token = (await run(*asked, "desk")).strip()
    other = await operator.row(*asked, "hall")
    assert (other["name"], other["scopes"]) == ("hall", ["devices:read"])
    assert (await operator.stage.ask("GET /v1/devices", other["token"])).status_code == 200
    assert await operator.rows("tokens", "revoke", "hall") == [{"name": "hall", "revoked": True}]
    assert (await operator.stage.ask("GET /v1/devices", other["token"])).status_code == 401
    assert (await operator.stage.ask("GET /v1/devices", token)).status_code == 200
    assert not operator.tokens.exists()
    file_token = (await run("tokens", "new", "--scope", GATEWAY_CONNECT, "anna")).strip()
    assert OperatorTokens(operator.tokens).find(file_token)
    assert stat.S_IMODE(operator.tokens.stat().st_mode) == 0o600
    direct = (await run("tokens", "new", "--direct", "--scope", "devices:read", "desk")).strip()
    assert OperatorTokens(operator.tokens).find(direct)
    (desk,) = [one for one in await operator.rows("tokens", "list") if one["name"] == "desk"]
    assert desk["scopes"] == ["devices:read"] and desk["expires"].startswith("2099")
    assert {one["name"] for one in await operator.rows("tokens", "list", "--file")} == {"anna", "desk"}
    assert await run("tokens", "revoke", "desk") == "desk is revoked\n"
    assert (await operator.stage.ask("GET /v1/devices", token)).status_code == 401
    assert not OperatorTokens(operator.tokens).find(direct)
    assert "has no token" in await run("tokens", "revoke", "desk", code=1)
    assert '"revoked": false' in await run("tokens", "revoke", "desk", "--json", code=1)
    kept = await operator.row("tokens", "new", "--scope", GATEWAY_CONNECT, "--scope", "devices:read", "bob")
    assert (kept["name"], kept["scopes"]) == ("bob", ["devices:read", GATEWAY_CONNECT])
    assert OperatorTokens(operator.tokens).find(kept["token"])
