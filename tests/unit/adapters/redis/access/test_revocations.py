"""The log of the deny list; tests/integration/redis/test_revocations.py has the rest, over real servers too."""

import pytest

from fleet.adapters.redis.access import revocations as module
from fleet.adapters.redis.access.revocations import ListVersion, Revocations, RevocationStep
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Overloaded
from fleet.wire.identity import LARGEST_GENERATION, Minima

ONE, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def said(steps: list[RevocationStep]) -> list[tuple[int, str, str, int]]:
    return [(step.after.version, step.what, step.mac, step.generation) for step in steps]


async def test_the_log_says_what_changed_and_only_that(store: Store) -> None:
    revocations = Revocations(store)
    nothing = await revocations.version()
    assert nothing == ListVersion(0, "") and await revocations.since(nothing) == []
    for _ in range(2):
        await revocations.add(ONE)
        await revocations.require(OTHER, 3)
        await revocations.require_all(1)
    await revocations.remove(ONE)
    steps = await revocations.since(nothing)
    assert said(steps) == [
        (1, "revoke", ONE, 0),
        (2, "require", OTHER, 3),
        (3, "require_all", "", 1),
        (4, "unrevoke", ONE, 0),
    ]
    assert steps[-1].after == await revocations.version()
    assert said(await revocations.since(steps[1].after)) == said(steps)[2:]


async def test_a_full_list_refuses_more_and_takes_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 1)
    revocations = Revocations(store)
    assert await revocations.add(ONE) and await revocations.require(ONE, 2)
    with pytest.raises(Overloaded, match="1 entries"):
        await revocations.add(OTHER)
    with pytest.raises(Overloaded, match="1 entries"):
        await revocations.require(OTHER, 2)
    assert await revocations.require(ONE, LARGEST_GENERATION)
    assert await revocations.remove(ONE) and await revocations.add(OTHER)


async def test_minima_of_one_that_all_devices_have_are_removed_in_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PRUNE_BATCH", 2)
    revocations = Revocations(store)
    for number in range(5):
        await revocations.require(f"02:00:00:00:01:{number:02x}", 1)
    await revocations.require(ONE, 2)
    assert await revocations.require_all(1)
    assert await revocations.minima() == Minima(1, {ONE: 2})
    assert [await revocations.minimum(mac) for mac in (ONE, OTHER)] == [2, 1]


async def test_a_device_that_is_forgotten_leaves_the_list_and_its_log(store: Store) -> None:
    revocations = Revocations(store)
    for mac in (ONE, OTHER):
        await revocations.add(mac)
        await revocations.require(mac, 2)
    known = await revocations.version()
    await revocations.forget(ONE)
    assert (await revocations.read(), await revocations.minima()) == ({OTHER}, Minima(0, {OTHER: 2}))
    steps = await revocations.since(ListVersion(0, ""))
    assert [(step.mac, step.what) for step in steps] == [(OTHER, "revoke"), (OTHER, "require")]
    assert (await revocations.version()).version == known.version + 1, "watchers read the whole list"
    await revocations.forget(ONE)
    assert (await revocations.version()).version == known.version + 1
