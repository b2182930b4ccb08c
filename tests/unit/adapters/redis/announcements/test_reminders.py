"""How tenants share the places of a shard's reminders, and those of deliveries; the rest is tested with a worker."""

from collections import Counter
from collections.abc import Sequence

import pytest

from fleet.adapters.redis.announcements import reminders
from fleet.adapters.redis.announcements.reminders import LOOKED_AT, SHARE, Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tenants import DeviceTenants
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.reminders import MOST
from fleet.wire.reminders import Reminder

PLACES = 400
GREEDY, OTHER = 5, 6


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reminders, "MOST_OF_SITE", PLACES)


def macs(tenant: int, count: int) -> list[str]:
    return [f"02:00:00:{tenant:02x}:{number // 256:02x}:{number % 256:02x}" for number in range(count)]


async def known(store: Store, tenant: int, count: int) -> list[str]:
    """Return devices of a tenant."""
    named = macs(tenant, count)
    for mac in named:
        await Devices(store).appear(mac, online=True, epoch=5)
    await DeviceTenants(store).put(dict.fromkeys(named, tenant))
    return named


async def take(store: Store, owner: Owner, named: Sequence[str], most: int = MOST, due: int = 1) -> Counter[str]:
    """Let each device set reminders until it is refused; return how many each has got."""
    kept, got = Reminders(store), Counter[str]()
    for number in range(most):
        for mac in named:
            made = await kept.add(owner, mac, Reminder(id=f"{due}-{number}", text="x", due=due))
            got[mac] += isinstance(made, Reminder)
    return got


async def test_devices_of_one_tenant_take_no_more_than_half_of_a_shard(store: Store, owner: Owner) -> None:
    got = await take(store, owner, await known(store, GREEDY, 300))
    assert got.total() == PLACES // 2
    (mac,) = await known(store, OTHER, 1)
    assert (await take(store, owner, [mac]))[mac] == MOST
    (own,) = await known(store, 0, 1)
    assert (await take(store, owner, [own]))[own] == MOST, "so does a device of the tenant of the site"


async def test_tenants_that_want_all_get_equal_parts_and_leave_as_much_to_the_next_one(
    store: Store, owner: Owner
) -> None:
    named = [mac for tenant in (1, 2, 3) for mac in await known(store, tenant, 200)]
    got = await take(store, owner, sorted(named, key=lambda mac: mac[-5:]))
    parts = [sum(got[mac] for mac in macs(tenant, 200)) for tenant in (1, 2, 3)]
    assert max(parts) - min(parts) <= 1 and abs(min(parts) - PLACES // 4) <= 1
    (mac,) = await known(store, OTHER, 1)
    assert (await take(store, owner, [mac]))[mac] == MOST


async def test_few_devices_leave_the_others_of_their_tenant_a_share(store: Store, owner: Owner) -> None:
    greedy, late = (await known(store, GREEDY, 12))[:8], macs(GREEDY, 12)[8:]
    got = Counter[str]()
    for mac in greedy:
        got += await take(store, owner, [mac])
    assert max(got.values()) == MOST and min(got.values()) == SHARE
    found = await take(store, owner, late)
    assert set(found.values()) == {SHARE}


async def test_what_is_cancelled_or_over_makes_room_for_its_tenant(store: Store, owner: Owner) -> None:
    named, kept = await known(store, GREEDY, 300), Reminders(store)
    got = await take(store, owner, named)
    full = [mac for mac in named if got[mac]]
    assert not (await take(store, owner, full[:1], due=2)).total()
    gone = [await kept.clear(mac) for mac in full[:20]]
    assert (await take(store, owner, named, due=3)).total() == sum(gone)
    other = await known(store, OTHER, 1)
    assert (await take(store, owner, other)).total() == MOST


async def test_reminders_of_one_tenant_do_not_take_all_places_for_deliveries(store: Store, owner: Owner) -> None:
    await take(store, owner, await known(store, GREEDY, 150), 1, due=1)
    await take(store, owner, await known(store, OTHER, 3), 1, due=2)
    found = await Reminders(store).claim(owner, 0, 100, first=True)
    assert Counter(one.tenant for one in found.claimed) == {GREEDY: 50, OTHER: 3}
    assert found.after == 0.0, "others are due"
    again = await Reminders(store).claim(owner, 0, 47, {GREEDY: 50, OTHER: 3}, first=False)
    assert not again.claimed
    more = await Reminders(store).claim(owner, 0, 67, {GREEDY: 30, OTHER: 3}, first=False)
    assert Counter(one.tenant for one in more.claimed) == {GREEDY: 19}


async def test_each_reminder_is_looked_at_though_many_of_another_tenant_are_due_before(
    store: Store, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reminders, "MOST_OF_SITE", 8 * LOOKED_AT)
    count = 3 * LOOKED_AT
    await take(store, owner, await known(store, GREEDY, count), 1, due=1)
    await take(store, owner, await known(store, OTHER, 1), 1, due=2)
    held, looks = Counter({GREEDY: 5}), 0
    while not held[OTHER]:
        found = await Reminders(store).claim(owner, 0, 5, held, first=False)
        held.update(one.tenant for one in found.claimed)
        looks += 1
    assert looks <= 4 and held[GREEDY] == 5


async def test_a_device_that_moves_counts_for_its_new_tenant(store: Store, owner: Owner) -> None:
    named = await known(store, GREEDY, 300)
    await take(store, owner, named)
    assert not (await take(store, owner, named[-1:], due=2)).total()
    await Reminders(store).clear(named[-1])
    await DeviceTenants(store).put({named[-1]: OTHER})
    assert (await take(store, owner, named[-1:], due=3)).total() == MOST
    await DeviceTenants(store).put({named[-1]: 0})
    assert await store.client.hget(store.keys.device(named[-1]), "ten") == "0"


async def test_a_device_without_a_record_gets_none(store: Store) -> None:
    (mac,) = macs(GREEDY, 1)
    await DeviceTenants(store).put({mac: GREEDY})
    assert not await store.client.exists(store.keys.device(mac))
