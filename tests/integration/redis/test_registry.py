"""Offers of firmware, which are counted."""

import pytest

from fleet.adapters.redis.access.admissions import YOUNG_SECONDS
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices import registry
from fleet.adapters.redis.devices.registry import DeviceRegistry


async def test_an_offer_is_counted_by_client_and_version_within_its_day(
    store: Store, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers = DeviceRegistry(store)
    assert [await offers.count_offer(mac, "one", "2.0.0") for _ in range(3)] == [1, 2, 3]
    assert await offers.count_offer(mac, "two", "2.0.0") == 1
    assert await offers.count_offer(mac, "one", "2.0.1") == 1
    assert await offers.count_offer(mac, "one", "2.0.1") == 2
    monkeypatch.setattr(registry, "OFFER_SECONDS", 0)
    assert await offers.count_offer(mac, "one", "2.0.1") == 1
    assert 0 < await store.client.ttl(store.keys.device(mac)) <= YOUNG_SECONDS


async def test_offers_to_too_many_clients_are_not_counted(store: Store, mac: str) -> None:
    offers = DeviceRegistry(store)
    assert [await offers.count_offer(mac, f"client {number}", "2.0.0") for number in range(10)] == [1] * 8 + [0] * 2
    assert await offers.count_offer(mac, "client 0", "2.0.0") == 2
