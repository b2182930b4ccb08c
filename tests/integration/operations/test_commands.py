"""`fleet devices` and `fleet keys` as commands of their own, beside a real Redis."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.keys import Keys as Names
from fleet.adapters.redis.shards.leases import Leases
from fleet.core.memory import MemoryChanges
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import headers
from tests.support.attacked_api import OTA, attacked_api
from tests.support.command_line import CommandLine, command_line
from tests.support.redis_store import opened

MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


def test_devices_are_revoked_and_bound_by_hand(fleet: CommandLine, redis_url: str) -> None:
    revoked = fleet.run("devices", "revoke", "02-00-00-00-00-01", FLEET_REDIS_URL=redis_url)
    assert (revoked.returncode, revoked.stdout.strip()) == (0, f"{MAC} is revoked")
    bound = fleet.run("devices", "bind", MAC, FLEET_REDIS_URL=redis_url)
    assert bound.returncode == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.smembers("{revoked}:macs") == {MAC}
        assert client.hget(f"f:{{{Names(16).shard(MAC)}}}:o:{MAC}", "bound")
        client.zadd(f"f:{{{Names(16).shard(MAC)}}}:seen", {MAC: 4_000_000_000})
    listed = fleet.run("devices", "list", FLEET_REDIS_URL=redis_url)
    assert MAC in listed.stdout and "revoked" in listed.stdout and "MAC, not seen yet" in listed.stdout


async def test_what_devices_remember_is_shown_and_deleted(fleet: CommandLine, redis_url: str) -> None:
    other = "02:00:00:00:00:02"

    async def run(*words: str) -> tuple[int, str]:
        done = await asyncio.to_thread(fleet.run, "memory", *words, FLEET_REDIS_URL=redis_url)
        return done.returncode, done.stdout

    async with opened(redis_url) as store:
        for mac in (MAC, other):
            lease = await Leases(store, "w", 60).take(store.keys.shard(mac))
            assert lease is not None
            facts = ("Anna likes tea.", "Anna likes tea and milk.", "她有一只猫。")
            await Memories(store).change(lease, mac, MemoryChanges(facts))
        code, shown = await run("show", "02-00-00-00-00-01", "--json")
        assert (code, json.loads(shown)) == (0, {"facts": [{"fact": fact} for fact in facts]})
        assert (await run("forget", MAC, "Anna"))[0] == 2, "of two facts"
        assert await run("forget", MAC, "Anna likes tea.") == (0, f"{MAC} has forgotten: Anna likes tea.\n")
        assert await run("forget", MAC, "Anna") == (0, f"{MAC} has forgotten: Anna likes tea and milk.\n")
        for nothing in ("Anna", ""):
            assert (await run("forget", MAC, nothing))[0] == 2
        assert await Memories(store).read(MAC) == facts[2:]
        assert await run("clear", MAC) == (0, f"{MAC} has forgotten 1 fact\n")
        assert (await run("clear"))[0] == (await run("clear", MAC, "--all"))[0] == 2
        assert await Memories(store).read(other) == facts
        assert await run("clear", "--all") == (0, f"{other} has forgotten 3 facts\n")
        assert await Memories(store).all() == []


async def test_devices_that_never_connected_are_listed(fleet: CommandLine, redis_url: str) -> None:
    """Those that an operator bound or revoked before, and those that wait with a code."""
    revoked, waiting = "02:00:00:00:00:02", "02:00:00:00:00:03"
    async with opened(redis_url) as store:
        await Admissions(store).bind(MAC)
        await Revocations(store).add(revoked)
        codes = [(await Activations(store).begin(waiting, who, "", with_code=True)).code for who in ("a", "b")]
        await Activations(store).begin(revoked, "c", "", with_code=False)
    done = await asyncio.to_thread(fleet.run, "devices", "list", "--json", FLEET_REDIS_URL=redis_url)
    devices = {one["device"]: one for one in json.loads(done.stdout)["devices"]}
    assert {mac: one["state"] for mac, one in devices.items()} == {
        MAC: "not seen",
        revoked: "revoked",
        waiting: "waits",
    }
    assert devices[MAC]["owner"] == "MAC, not seen yet" and devices[MAC]["last_start"] is None
    assert devices[MAC]["others"] == 0, "a number is a number"
    assert sorted(devices[waiting]["code"].split(", ")) == sorted(codes) and devices[revoked]["code"] is None
    table = (await asyncio.to_thread(fleet.run, "devices", "list", FLEET_REDIS_URL=redis_url)).stdout
    assert all(code in table for code in codes)
    assert table.isascii() and len(table.splitlines()) == 4, "a heading and a line for each device"


def test_every_list_is_json_of_one_shape(fleet: CommandLine, redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("k2 the-newer-key-of-this-test\nk1 a-key-of-this-test-only\n")
    env = {"FLEET_DATA_DIR": str(tmp_path), "FLEET_REDIS_URL": redis_url, "FLEET_SHARDS": "32"}
    assert fleet.run("tokens", "new", "--scope", "gateway:connect", "anna", **env).returncode == 0

    def listed(*words: str) -> list[dict[str, Any]]:
        done = fleet.run(*words, "--json", **env)
        assert done.returncode == 0, done.stderr
        ((_, found),) = json.loads(done.stdout).items()
        return list(found)

    assert listed("keys", "list") == [{"key": "k2", "state": "signs"}, {"key": "k1", "state": "still valid"}]
    assert listed("tokens", "list") == [{"name": "anna", "scopes": "gateway:connect"}]
    assert listed("devices", "claims") == listed("devices", "list") == []
    (shards,) = listed("settings", "--changed", "shards")
    assert (shards["variable"], shards["value"], shards["default"]) == ("FLEET_SHARDS", "32", "16")
    (command,) = [one for one in listed("commands") if one["path"] == "fleet keys list"]
    assert any(one["syntax"].startswith("--json") for one in command["options"])


async def test_changes_without_control_print_json_too(fleet: CommandLine, redis_url: str) -> None:
    def change(*words: str, code: int = 0) -> list[dict[str, Any]]:
        done = fleet.run(*words, "--json", FLEET_REDIS_URL=redis_url)
        assert done.returncode == code, done
        ((_, found),) = json.loads(done.stdout).items()
        return list(found)

    cycle = "the device must be switched off and on"
    assert change("devices", "timezone", MAC, "Europe/Berlin") == [{"mac": MAC, "time_zone": "Europe/Berlin"}]
    async with opened(redis_url) as store:
        for client in ("owner", "second", "third"):
            await Admissions(store).decide("first", BootstrapAsker(MAC, client, "192.0.2.1"), {"kid": "k1"})
            await Claims(store).note(MAC, "192.0.2.1")
    (accepted,) = change("devices", "accept", MAC, "second")
    assert accepted["changed"] and f"an earlier password of {MAC}" in accepted["note"]
    (old,) = change("devices", "renew", code=1)
    assert (old["mac"], old["online"]) == (MAC, False) and old["valid_until"].endswith("Z")
    assert change("devices", "renew", "--now") == [{"mac": MAC, "online": False, "valid_until": None}]
    (renewed,) = change("devices", "renew", MAC, "--now")
    assert renewed == {"mac": MAC, "changed": True, "note": f"earlier passwords of {MAC} are refused: {cycle}"}
    assert change("devices", "refuse", MAC) == [{"mac": MAC, "changed": True, "note": ""}]
    for verb, note in (("bind", ""), ("revoke", ""), ("unrevoke", cycle), ("unbind", cycle), ("debug", "")):
        (outcome,) = change("devices", verb, MAC)
        assert (outcome["mac"], outcome["changed"]) == (MAC, True) and note in outcome["note"], verb
    assert change("memory", "clear", MAC) == [{"mac": MAC, "count": 0}]
    assert change("memory", "clear", "--all") == []


def test_without_a_keys_file_it_is_said_what_to_do(fleet: CommandLine, tmp_path: Path) -> None:
    done = fleet.run("keys", "list", FLEET_DATA_DIR=str(tmp_path))
    assert done.returncode == 2
    assert f"there is no keys file {tmp_path / 'keys'}" in done.stderr
    assert "FLEET_KEYS_FILE" in done.stderr and "fleet up" in done.stderr


def test_a_pipe_gets_plain_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fleet", "devices", "--help"], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.isascii() and "\x1b" not in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "--help  Show this message and exit." in lines
    assert any(line.startswith("notify") and line.endswith("play an audio file.") for line in lines)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("devices", "revoke", "nonsense"), "not a MAC"),
        (("devices", "bind", "123456"), "no device shows the code"),
        (("devices", "timezone", MAC, "Mars/Base"), "not a time zone"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    fleet: CommandLine, redis_url: str, words: tuple[str, ...], error: str
) -> None:
    done = fleet.run(*words, FLEET_REDIS_URL=redis_url)
    assert done.returncode == 2
    assert error in done.stderr


def test_the_keys_of_a_file_are_shown_without_their_secrets(fleet: CommandLine, redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("k2 the-newer-key-of-this-test\nk1 a-key-of-this-test-only\n")
    shown = fleet.run("keys", "list", FLEET_KEYS_FILE=str(path), FLEET_REDIS_URL=redis_url)
    assert shown.stdout.split() == ["k2", "signs", "k1", "still", "valid"]
    refused = fleet.run("keys", "rotate", FLEET_KEYS="k1:a-key-of-this-test-only", FLEET_REDIS_URL=redis_url)
    assert refused.returncode == 2 and "FLEET_KEYS_FILE" in refused.stderr


async def test_what_strangers_wrote_is_shown_as_they_wrote_it(fleet: CommandLine, redis_url: str) -> None:
    other = "02:00:00:00:00:02"

    async def run(*words: str) -> str:
        done = await asyncio.to_thread(fleet.run, "devices", *words, FLEET_REDIS_URL=redis_url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async with opened(redis_url) as store, attacked_api(store, CredentialKeys("k1:a-key-of-this-test-only")) as site:
        report = b'{"board": {"type": "[/x]"}, "application": {"version": "[red]aaa"}}'
        for changed, body in (({"User_Agent": ""}, report), ({"User_Agent": "x/[/y]", "Device_Id": other}, b"{}")):
            sent = headers(**{"Device_Id": MAC, **changed})
            assert (await site.client.post(OTA, headers=sent, content=body)).status_code == 200
        assert (await site.boot(MAC, Client_Id="[/z][bold]stranger")).status_code == 200
        listed = await run("list")
        assert all(text in listed for text in ("[/x]", "[red]aaa", "[/y]")), listed
        assert "[/z]" in await run("claims")
        # Nothing of ours writes such a thing; what did would turn the line around, or clear the screen.
        key = store.keys.device(MAC)
        await store.client.hset(key, mapping={"board": "\u202etxt\x1b[2J", "fw": "1\n2"})
        listed = await run("list")
        assert r"\u202etxt\x1b[2J" in listed and r"1\n2" in listed
        assert "\u202e" not in listed and "\x1b" not in listed


async def test_claims_are_shown_and_settled_by_hand(fleet: CommandLine, redis_url: str) -> None:
    def run(*words: str) -> str:
        done = fleet.run("devices", *words, FLEET_REDIS_URL=redis_url)
        return done.stdout + done.stderr

    other, ids = "02:00:00:00:00:02", ["claimant-1234567890-a", "claimant-1234567890-b", "claimant"]
    async with opened(redis_url) as store:
        for name in (MAC, other):
            for number, client in enumerate(["the-owner", *ids[: 3 if name == MAC else 1]]):
                address = f"192.0.2.{number}"
                await Admissions(store).decide("first", BootstrapAsker(name, client, address), {"kid": "k1"})
                if client != "the-owner":
                    await Claims(store).note(name, address)
    shown = run("claims")
    assert all(text in shown for text in (*ids, MAC, other, "192.0.2.2")), "two can be distinguished"
    assert other in run("claims", "02-00-00-00-00-02") and MAC not in run("claims", other)
    assert "not a MAC" in run("claims", "nonsense")
    output = run("refuse", MAC)
    assert "name one" in output and all(text in output for text in ids)
    output = run("accept", MAC, "claimant-1")
    assert "name one" in output and all(text in output for text in ids[:2])
    assert f"{ids[0]} gets no code" in run("refuse", MAC, ids[0])
    assert "claimant gets no code" in run("refuse", MAC, "claimant"), "the beginning of another, and whole"
    assert "at most until" in run("accept", MAC)
    assert next(line for line in run("list").splitlines() if MAC in line).count("code") == 1
    assert MAC not in run("claims")
    assert "no such claim" in run("accept", MAC)
    assert "at most until" in run("bind", MAC) and "MAC, not seen yet" in run("list")
    assert "at once" not in run("renew", MAC, "--now") and "switched off and on" in run("unbind", MAC)
    assert "unbound" in run("list")
    assert "no owner" in run("renew", MAC)
