"""`fleet doctor` and `fleet devices debug` as commands of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

MAC = "02:00:00:00:00:01"


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    return {"FLEET_DATA_DIR": str(tmp_path)}


def fleet(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "LLM_"))}
    command = [sys.executable, "-m", "fleet", *words]
    return subprocess.run(command, env=kept | env, capture_output=True, text=True, timeout=120, check=False)


def test_scripts_get_json_and_an_exit_code(redis_url: str, place: dict[str, str]) -> None:
    done = fleet("doctor", "--only", "redis,settings", "--json", FLEET_REDIS_URL=redis_url, **place)
    told = json.loads(done.stdout)
    assert done.returncode == told["exit"] == 0, done.stderr
    assert "redis.eviction" in {one["check"] for one in told["findings"]}


def test_settings_that_cannot_be_used_have_a_code_of_their_own(place: dict[str, str]) -> None:
    done = fleet("doctor", "--only", "redis", FLEET_REDIS_URL="http://no.redis", **place)
    assert done.returncode == 2 and "WRONG redis.reach" in done.stdout


def test_one_device_is_judged_and_looked_at(redis_url: str, place: dict[str, str]) -> None:
    done = fleet("doctor", "--device", MAC, FLEET_REDIS_URL=redis_url, **place)
    assert done.returncode == 1 and "PROBLEM device.bootstrap" in done.stdout
    assert fleet("devices", "debug", MAC, "--minutes", "5", FLEET_REDIS_URL=redis_url, **place).returncode == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.zrange("debugged", 0, -1) == [MAC]
