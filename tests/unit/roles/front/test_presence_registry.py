"""Which devices are here, and what is announced about them."""

import json

import pytest

from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.presence_registry import PresenceRegistry
from fleet.roles.front.proxied_connection import SILENT, ProxiedConnection

MAC = "02:00:00:00:00:07"


class Told(list[tuple[bool, int]]):
    """What was announced about `MAC`: online and epoch."""

    def announce(self, mac: str, message: bytes) -> None:
        assert mac == MAC
        news = json.loads(message)
        self.append((news["online"], news["epoch"]))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def registry(told: Told) -> PresenceRegistry:
    return PresenceRegistry(told.announce)


async def connection() -> ProxiedConnection:
    return ProxiedConnection(FrontLimits(), lambda *_: None)


async def test_device_that_was_announced_is_announced_as_gone_once(registry: PresenceRegistry, told: Told) -> None:
    device, old = registry.add(MAC, await connection(), 1000)
    assert (old, told) == (None, [])
    registry.mark_announced(device)
    registry.remove(device)
    registry.remove(device)
    assert told == [(False, 1000)]
    news = device.announcement("10.0.0.1")
    assert json.loads(news.online) == {"online": True, "epoch": 1000, "ip": "10.0.0.1"}
    assert json.loads(news.offline) == {"online": False, "epoch": 1000}


async def test_device_that_never_got_through_is_not_announced(registry: PresenceRegistry, told: Told) -> None:
    registry.remove(registry.add(MAC, await connection(), 1000)[0])
    assert told == []


async def test_replaced_stay_ends_unannounced(registry: PresenceRegistry, told: Told) -> None:
    first, _ = registry.add(MAC, await connection(), 1000)
    registry.mark_announced(first)
    second, old = registry.add(MAC, await connection(), 1000)
    assert old is first
    registry.remove(first)
    assert told == []
    registry.remove(second)
    assert told == [(False, 1001)]


async def test_replaced_stay_that_was_announced_meanwhile_counts_for_the_next(
    registry: PresenceRegistry, told: Told
) -> None:
    first, _ = registry.add(MAC, await connection(), 1000)
    second, _ = registry.add(MAC, await connection(), 2000)
    registry.mark_announced(first)
    registry.remove(first)
    registry.remove(second)
    assert told == [(False, 2000)]


async def test_replacement_that_does_not_get_through_announces_the_absence(
    registry: PresenceRegistry, told: Told
) -> None:
    first, _ = registry.add(MAC, await connection(), 1000)
    registry.mark_announced(first)
    second, _ = registry.add(MAC, await connection(), 2000)
    registry.remove(first)
    registry.remove(second)
    assert told == [(False, 2000)]


async def test_a_device_that_fell_silent_is_announced_as_expired(registry: PresenceRegistry, told: Told) -> None:
    device, _ = registry.add(MAC, await connection(), 1000)
    registry.mark_announced(device)
    device.connection.end(SILENT)
    assert json.loads(device.absence()) == {"online": False, "epoch": 1000, "expired": True}
