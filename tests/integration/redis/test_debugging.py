"""The list of devices that are looked at closely."""

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices import debugging
from fleet.adapters.redis.devices.debugging import DebuggedDevices, DebugWatch
from fleet.ground.errors import ConfigError


async def test_a_change_is_reported_once_and_ends_by_itself(
    store: Store, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[frozenset[str]] = []
    devices = DebuggedDevices(store)
    watch = DebugWatch(devices, reported.append)
    await watch.look()
    await devices.set(mac, 600)
    await watch.look()
    await watch.look()
    assert reported == [frozenset({mac})]
    before = debugging._now()
    monkeypatch.setattr(debugging, "_now", lambda: before + 601)
    await watch.look()
    assert reported == [frozenset({mac}), frozenset()]


async def test_it_is_ended_by_hand(store: Store, mac: str) -> None:
    devices = DebuggedDevices(store)
    await devices.set(mac, 600)
    await devices.set(mac, 0)
    assert await devices.read() == frozenset()


async def test_there_is_a_bound(store: Store, mac: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debugging, "MOST", 2)
    devices = DebuggedDevices(store)
    for number in range(2):
        await devices.set(f"02:00:00:00:00:0{number}", 600)
    with pytest.raises(ConfigError, match="--minutes 0"):
        await devices.set(mac, 600)
    await devices.set("02:00:00:00:00:00", 60)
