"""All devices connect again and again, as after a restart of the broker, while Redis is slow."""

import asyncio
from typing import Any

import pytest

from fleet.adapters.redis.devices.devices import Devices, PresenceChange
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.inbound.presences import MOST_AT_ONCE
from tests.integration.worker.scene import Scene, random_mac
from tests.integration.worker.scripted import PATIENCE

DEVICES = MOST_AT_ONCE + 8
CONNECTIONS = 3


class SlowRedis:
    """Lets no presence reach Redis before `going_on` is set; counts how many want to."""

    def __init__(self) -> None:
        self.going_on = asyncio.Event()
        self.now = self.most = 0

    def before(self, appear: Any) -> Any:
        async def slow(devices: Devices, mac: str, **more: Any) -> PresenceChange:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self.going_on.wait()
                change: PresenceChange = await appear(devices, mac, **more)
            finally:
                self.now -= 1
            return change

        return slow


async def test_of_the_presences_that_wait_only_the_newest_of_each_device_is_recorded(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, before = SlowRedis(), metrics.presences_replaced.read()[()]
    monkeypatch.setattr(Devices, "appear", slow.before(Devices.appear))
    macs = [random_mac() for _ in range(DEVICES)]
    for _ in range(CONNECTIONS):
        for mac in macs:
            await stage.connect(mac)
    async with asyncio.timeout(PATIENCE):
        while metrics.presences_replaced.read()[()] - before < DEVICES * (CONNECTIONS - 1) - MOST_AT_ONCE:
            await asyncio.sleep(0.01)
    assert slow.most == MOST_AT_ONCE
    slow.going_on.set()
    newest = {device.mac: device for device in stage.opened}
    async with asyncio.timeout(PATIENCE):
        while not all([(await stage.resources.devices.read(mac)).online for mac in newest]) or slow.now:
            await asyncio.sleep(0.01)
    assert slow.most == MOST_AT_ONCE
