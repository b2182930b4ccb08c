"""The benchmark runs two real brokers and reaches every device; what it costs is never asserted."""

import asyncio
from pathlib import Path

import pytest

from fleet.ground.errors import Unavailable
from fleet.workbench.bench.broker_load import Load
from fleet.workbench.bench.broker_server import running_broker
from fleet.workbench.local_servers.mosquitto import build_plugin
from tests.support.bench_command import start_bench

LIMIT = 240


async def test_all_setups_are_measured(tmp_path: Path) -> None:
    printed, found = await start_bench(tmp_path, "broker", "--devices", "30", "--messages", "200", "--repeats", "1")
    assert "with plugin" in printed and "mosquitto" in found["broker"]
    without, subscribing, plugin = found["cases"]
    assert [case["setup"]["plugin"] for case in found["cases"]] == [False, False, True]
    assert without["down_us"] is None
    assert {"median", "least", "most"} == subscribing["down_us"].keys() == plugin["down_us"].keys()
    for case in found["cases"]:
        connect = case["connect_us"]
        assert 0 < connect["least"] <= connect["median"] <= connect["most"]
        assert case["disconnect_us"]["least"] > 0 < case["up_us"]["least"]


async def test_message_that_does_not_arrive_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.workbench.bench.broker_load._PATIENCE_SECONDS", 0.3)
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
