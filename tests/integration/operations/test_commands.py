"""`fleet devices` and `fleet keys` as commands of their own, beside a real Redis."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from fleet.store.keys import Keys as Names

MAC = "02:00:00:00:00:01"


def fleet(redis_url: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    return subprocess.run(
        [sys.executable, "-m", "fleet", *words],
        env=kept | {"FLEET_REDIS_URL": redis_url} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_devices_are_revoked_and_bound_by_hand(redis_url: str) -> None:
    revoked = fleet(redis_url, "devices", "revoke", "02-00-00-00-00-01")
    assert (revoked.returncode, revoked.stdout.strip()) == (0, f"{MAC} is revoked")
    bound = fleet(redis_url, "devices", "bind", MAC)
    assert bound.returncode == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.smembers("{revoked}:macs") == {MAC}
        assert client.hget(f"f:{{{Names(16).shard(MAC)}}}:o:{MAC}", "bound")
        client.zadd(f"f:{{{Names(16).shard(MAC)}}}:seen", {MAC: 4_000_000_000})
    listed = fleet(redis_url, "devices", "list")
    assert MAC in listed.stdout and "revoked" in listed.stdout and "yes" in listed.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("devices", "revoke", "nonsense"), "no MAC"),
        (("devices", "bind", "123456"), "no device shows the code"),
        (("devices", "timezone", MAC, "Mars/Base"), "no time zone"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(redis_url: str, words: tuple[str, ...], told: str) -> None:
    done = fleet(redis_url, *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_keys_of_a_file_are_shown_without_their_secrets(redis_url: str, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("k2 the-newer-key-of-this-test\nk1 a-key-of-this-test-only\n")
    shown = fleet(redis_url, "keys", "list", FLEET_KEYS_FILE=str(path))
    assert shown.stdout.split() == ["k2", "signs", "k1", "still", "good"]
    refused = fleet(redis_url, "keys", "rotate", FLEET_KEYS="k1:a-key-of-this-test-only")
    assert refused.returncode == 2 and "FLEET_KEYS_FILE" in refused.stderr
