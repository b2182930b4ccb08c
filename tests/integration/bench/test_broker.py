"""The benchmark runs two real brokers and reaches every device; what it costs is never asserted."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fleet.bench.broker import Plan, measure
from fleet.bench.broker_load import Load
from fleet.bench.broker_server import build_plugin, running_broker
from fleet.errors import Unavailable

LIMIT = 90


async def test_all_setups_are_measured() -> None:
    done: list[str] = []
    async with asyncio.timeout(LIMIT):
        found = await measure(Plan(devices=30, messages=200, idle_seconds=0.1, repeats=2), done.append)
    assert "mosquitto" in found.broker
    without, subscribing, plugin = found.cases
    assert without.down_us is None
    assert subscribing.down_us is not None and plugin.down_us is not None
    for case in found.cases:
        assert 0 < case.connect_us.least <= case.connect_us.median <= case.connect_us.most
        assert case.disconnect_us.least > 0 < case.up_us.least
    assert len([what for what in done if "round" in what]) == 2 * len(found.cases)


async def test_message_that_does_not_arrive_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.bench.broker_load._PATIENCE_SECONDS", 0.3)
    async with asyncio.timeout(LIMIT), running_broker(tmp_path, None) as broker:
        load = Load(broker.port, broker.keys, subscribing=False)
        await load.start()
        await load.connect(2)
        with pytest.raises(Unavailable, match="kept 5 messages to itself"):
            await load.deliver(5)
        await load.leave()
        await load.stop()


async def test_broker_with_the_plugin_refuses_wrong_keys(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        plugin = await build_plugin(tmp_path)
        async with running_broker(tmp_path, plugin) as broker, running_broker(tmp_path, None) as other:
            with pytest.raises(Unavailable, match="refused with code 5"):
                await Load(broker.port, other.keys, subscribing=False).start()


async def test_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    command = [sys.executable, "-m", "fleet.bench", "broker", "--devices", "20", "--messages", "100", "--repeats", "1"]
    async with asyncio.timeout(LIMIT):
        process = await asyncio.create_subprocess_exec(
            *command, "--json", str(file), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    assert "with plugin" in printed.decode()
    found = json.loads(file.read_text())
    assert found["benchmark"] == "broker"
    assert [case["setup"]["plugin"] for case in found["cases"]] == [False, False, True]
    assert {"median", "least", "most"} == found["cases"][2]["down_us"].keys()
