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
def register(told: Told) -> PresenceRegistry:
    return PresenceRegistry(told.announce)


async def connection() -> ProxiedConnection:
    return ProxiedConnection(FrontLimits())


async def test_device_that_was_announced_is_announced_as_gone_once(register: PresenceRegistry, told: Told) -> None:
    stay, old = register.add(MAC, await connection(), 1000)
    assert (old, told) == (None, [])
    register.mark_announced(stay)
    register.remove(stay)
    register.remove(stay)
    assert told == [(False, 1000)]
    news = stay.announcement("10.0.0.1")
    assert json.loads(news.online) == {"online": True, "epoch": 1000, "ip": "10.0.0.1"}
    assert json.loads(news.offline) == {"online": False, "epoch": 1000}


async def test_device_that_never_got_through_is_not_announced(register: PresenceRegistry, told: Told) -> None:
    register.remove(register.add(MAC, await connection(), 1000)[0])
    assert told == []


async def test_replaced_stay_ends_unannounced(register: PresenceRegistry, told: Told) -> None:
    first, _ = register.add(MAC, await connection(), 1000)
    register.mark_announced(first)
    second, old = register.add(MAC, await connection(), 1000)
    assert old is first
    register.remove(first)
    assert told == []
    register.remove(second)
    assert told == [(False, 1001)]


async def test_replaced_stay_that_was_announced_meanwhile_counts_for_the_next(
    register: PresenceRegistry, told: Told
) -> None:
    first, _ = register.add(MAC, await connection(), 1000)
    second, _ = register.add(MAC, await connection(), 2000)
    register.mark_announced(first)
    register.remove(first)
    register.remove(second)
    assert told == [(False, 2000)]


async def test_replacement_that_does_not_get_through_announces_the_absence(
    register: PresenceRegistry, told: Told
) -> None:
    first, _ = register.add(MAC, await connection(), 1000)
    register.mark_announced(first)
    second, _ = register.add(MAC, await connection(), 2000)
    register.remove(first)
    register.remove(second)
    assert told == [(False, 2000)]


async def test_a_device_that_fell_silent_is_announced_as_expired(register: PresenceRegistry, told: Told) -> None:
    stay, _ = register.add(MAC, await connection(), 1000)
    register.mark_announced(stay)
    stay.connection.end(SILENT)
    assert json.loads(stay.absence()) == {"online": False, "epoch": 1000, "expired": True}
