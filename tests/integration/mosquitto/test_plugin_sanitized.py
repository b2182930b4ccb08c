"""The plugin under AddressSanitizer and UndefinedBehaviorSanitizer, in a real broker, from its start to its end."""

import asyncio
import contextlib
import random
import subprocess
from pathlib import Path

import pytest

from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, up_topic
from tests.support.churn import Churn
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import Will, connect_packet, frame, string
from tests.support.plugin_build import BUILD, run_make
from tests.support.process import running

MAC = "02:5a:71:00:00:01"
FOUND = 23
"""Exit code that the sanitizers are told to use."""


def runtime(name: str) -> str:
    """Return the path of a sanitizer's library."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def sanitized(directory: Path, keys: CredentialKeys) -> MosquittoServer:
    run_make("sanitize")
    environment = {
        # The broker itself is not built with them, so they must be there before it.
        "LD_PRELOAD": f"{runtime('libasan.so')}:{runtime('libubsan.so')}",
        "ASAN_OPTIONS": f"detect_leaks=1:exitcode={FOUND}:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    plugin = {"plugin": str(BUILD / "fleet_plugin_sanitize.so")}
    return MosquittoServer(directory, keys, plugin, environment)


@pytest.mark.parametrize("connects", [300, pytest.param(10_000, marks=pytest.mark.slow, id="10000 connects")])
async def test_broker_runs_without_a_fault_or_a_leak(tmp_path: Path, keys: CredentialKeys, connects: int) -> None:
    with running(sanitized(tmp_path, keys)) as broker:
        async with asyncio.timeout(300), Clients(broker) as clients:
            await Churn(clients, connects, seed=5).run()
            await attack(clients)
            await change_files(clients)
        assert broker.process.stop() == 0, broker.log
        assert "Sanitizer" not in broker.log
        assert "runtime error" not in broker.log


async def attack(clients: Clients) -> None:
    """Send what no client should send."""
    chance = random.Random(6)
    # Without a Will: Mosquitto 2.0.11 itself leaks that of a refused or a second CONNECT, with and without a plugin.
    hello = connect_packet(clients.keys.issue("device", MAC))
    for _ in range(150):
        body = (
            string(chance.choice([up_topic(MAC), down_topic(MAC), "#", "$SYS/x", "fleet/down/" + "é" * 9000])) + b"\0\1"
        )
        packets = [frame(0x30, body), frame(0x32, body), frame(0x82, b"\0\1" + body), bytearray(hello)]
        damaged = bytearray(chance.choice(packets))
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        stranger = await clients.stranger()
        with contextlib.suppress(ConnectionError):
            await stranger.send(hello if chance.random() < 0.7 else bytes(damaged))
            await stranger.send(bytes(damaged))
        await stranger.discard()
        (await clients.device(MAC, will=Will(up_topic(MAC), b"x"))).cut()


async def change_files(clients: Clients) -> None:
    """Revoke, let in again, damage and rotate while devices are connected; by looks and by signals."""
    broker, service = clients.broker, await clients.service()
    device = await clients.device(MAC)
    broker.write_revoked("wrong", MAC)
    await device.closed()
    broker.write_keys("new short\n")
    broker.reload()
    broker.write_revoked()
    broker.write_keys(clients.keys.as_file() + "third a-key-for-tests-only-3\n")
    third = CredentialKeys("third:a-key-for-tests-only-3")
    async with asyncio.timeout(240):
        while await (await clients.stranger()).connect(third.issue("device", MAC)) != 0:
            await asyncio.sleep(0.05)
    await service.publish(down_topic(MAC), b"order")
    broker.write_keys(third.as_file())
    await service.closed()


@pytest.mark.parametrize("target", ["test", "sanitize", "fuzz-random"])
def test_parts_of_the_plugin_keep_their_promises(target: str) -> None:
    assert ("every promise kept" if target == "fuzz-random" else "all tests passed") in run_make(
        target, "FUZZ_ROUNDS=50000"
    )


def test_fuzzer_finds_nothing_in_a_few_seconds() -> None:
    """With clang that is libFuzzer, without it `fuzz-random`; `make fuzz FUZZ_SECONDS=…` runs longer."""
    told = run_make("fuzz", "FUZZ_SECONDS=3", "FUZZ_ROUNDS=50000")
    assert "every promise kept" in told or "-max_total_time=3" in told
