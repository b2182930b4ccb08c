"""`fleet doctor` and `fleet devices debug` as commands of their own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.command_line import CommandLine, command_line

MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    return {"FLEET_DATA_DIR": str(tmp_path)}


def test_scripts_get_json_and_an_exit_code(fleet: CommandLine, redis_url: str, place: dict[str, str]) -> None:
    done = fleet.run("doctor", "--only", "redis,settings", "--json", FLEET_REDIS_URL=redis_url, **place)
    told = json.loads(done.stdout)
    assert done.returncode == told["exit"] == 0, done.stderr
    assert "redis.eviction" in {one["check"] for one in told["findings"]}


def test_settings_that_cannot_be_used_have_a_code_of_their_own(fleet: CommandLine, place: dict[str, str]) -> None:
    done = fleet.run("doctor", "--only", "redis", FLEET_REDIS_URL="http://no.redis", **place)
    assert done.returncode == 2 and "WRONG redis.reach" in done.stdout
    done = fleet.run("doctor", "--only", "nonsense", **place)
    assert done.returncode == 2 and "choose from" in done.stderr


def test_one_device_is_judged_and_looked_at(fleet: CommandLine, redis_url: str, place: dict[str, str]) -> None:
    done = fleet.run("doctor", "--device", MAC, FLEET_REDIS_URL=redis_url, **place)
    assert done.returncode == 1 and "PROBLEM device.bootstrap" in done.stdout
    assert fleet.run("devices", "debug", MAC, "--minutes", "5", FLEET_REDIS_URL=redis_url, **place).returncode == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.zrange("debugged", 0, -1) == [MAC]


def test_other_commands_do_not_wait_for_what_it_imports() -> None:
    look = "import sys, fleet.operations.doctor.command; print('openai' in sys.modules, 'fleet.run' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_what_asks_for_nothing_on_a_public_address_is_warned_of(fleet: CommandLine, place: dict[str, str]) -> None:
    public = "203.0.114.7"
    risky = {
        "FLEET_METRICS_HOST": public,
        "CLOUD_HOST": public,
        "FLEET_PUBLIC_HOST": public,
        "FLEET_ACTIVATION": "open",
    }
    done = fleet.run("doctor", "--only", "settings", "--json", **risky, **place)
    assert done.returncode == 0
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    for check, setting in (
        ("settings.metrics", "FLEET_METRICS_HOST"),
        ("settings.gateway", "FLEET_GATEWAY_TOKENS"),
        ("settings.activation", "FLEET_ACTIVATION"),
    ):
        assert found[check]["verdict"] == "warning", check
        assert setting in found[check]["advice"]
    safe = {"FLEET_METRICS_HOST": "10.0.0.7", "CLOUD_HOST": public, "FLEET_GATEWAY_TOKENS": "true"}
    done = fleet.run("doctor", "--only", "settings", "--json", **safe, **place)
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    assert found["settings.metrics"]["verdict"] == found["settings.gateway"]["verdict"] == "ok"
