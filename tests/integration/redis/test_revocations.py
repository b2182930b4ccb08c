"""The revocation list, on a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fleet.adapters.redis.access.revocation_watch import Access, Change, RevocationWatch
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.ground.tasks import running
from fleet.wire.identity import CredentialKeys, Minima
from tests.support.redis_store import opened

ONE, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    async with opened(redis_url) as store:
        yield store


async def met(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


async def test_a_revocation_reaches_keys_file_and_connections_and_goes_again(store: Store, tmp_path: Path) -> None:
    keys, expelled, path = (
        CredentialKeys("k1:a-key-of-this-test-only"),
        list[frozenset[str] | None](),
        tmp_path / "revoked",
    )
    mine, revocations = keys.issue("device", ONE), Revocations(store)
    assert await revocations.add(OTHER)
    async with running("access", AccessWatch(store, keys, path, expelled.append).run), asyncio.timeout(240):
        await met(path.is_file)
        assert path.read_text() == f"{OTHER}\n"
        assert keys.verify(mine.client_id, mine.username, mine.password) == "device"
        assert await revocations.add(ONE) and not await revocations.add(ONE)
        await met(lambda: sorted(path.read_text().splitlines()) == [ONE, OTHER])
        assert keys.verify(mine.client_id, mine.username, mine.password) is None
        assert expelled == [None, frozenset({ONE})], "first of all everybody is looked at"
        assert await revocations.remove(ONE) and not await revocations.remove(ONE)
        await met(lambda: path.read_text() == f"{OTHER}\n")
    assert keys.verify(mine.client_id, mine.username, mine.password) == "device"


async def test_a_file_that_cannot_be_written_is_written_as_soon_as_it_can(store: Store, tmp_path: Path) -> None:
    keys, path = CredentialKeys("k1:a-key-of-this-test-only"), tmp_path / "later" / "revoked"
    await Revocations(store).add(ONE)
    async with running("access", AccessWatch(store, keys, path).run), asyncio.timeout(240):
        await met(lambda: ONE in keys.revoked)
        path.parent.mkdir()
        await met(path.is_file)
    assert path.read_text() == f"{ONE}\n"


class Followed:
    """A watch, and what it told last."""

    def __init__(self, store: Store) -> None:
        self.access, self.changes = Access(), list[Change]()
        self._watch = RevocationWatch(Revocations(store), self._take)

    async def look(self) -> Access:
        await self._watch.look()
        return self.access

    async def _take(self, access: Access, change: Change) -> None:
        self.access = access
        self.changes.append(change)


async def test_a_minimum_reaches_keys_file_and_connections(store: Store, tmp_path: Path) -> None:
    keys, expelled, path = (
        CredentialKeys("k1:a-key-of-this-test-only"),
        list[frozenset[str] | None](),
        tmp_path / "revoked",
    )
    old, new = keys.issue("device", ONE), keys.issue("device", ONE, policy="first", generation=3)
    revocations = Revocations(store)
    async with running("access", AccessWatch(store, keys, path, expelled.append).run), asyncio.timeout(240):
        await met(path.is_file)
        assert keys.verify(ONE, old.username, old.password) == "device"
        assert await revocations.require(ONE, 3)
        await met(lambda: path.read_text() == f">=3 {ONE}\n")
        assert keys.verify(ONE, old.username, old.password) is None
        assert keys.verify(ONE, new.username, new.password) == "device"
        assert await revocations.require_all(1) and await revocations.add(OTHER)
        await met(lambda: path.read_text() == f">=1 *\n>=3 {ONE}\n{OTHER}\n")
    assert expelled[:2] == [None, frozenset({ONE})] and None in expelled[2:]


async def test_a_minimum_only_rises_and_needs_no_entry_where_the_one_of_all_says_it(store: Store) -> None:
    revocations = Revocations(store)
    assert await revocations.require(ONE, 2) and not await revocations.require(ONE, 1)
    assert await revocations.require(OTHER, 1) and not await revocations.require(OTHER, 1)
    assert await revocations.minima() == Minima(0, {ONE: 2, OTHER: 1})
    assert await revocations.require_all(1) and not await revocations.require_all(1)
    assert await revocations.minima() == Minima(1, {ONE: 2})
    assert not await revocations.require(OTHER, 1) and await revocations.require(OTHER, 5)
    assert [await revocations.minimum(mac) for mac in (ONE, OTHER, "02:00:00:00:00:03")] == [2, 5, 1]
    assert await revocations.require_all(0)
    assert await revocations.minima() == Minima(0, {ONE: 2, OTHER: 5})
    for wrong in (0, -1, 2**31):
        with pytest.raises(ValueError, match="no generation"):
            await revocations.require(ONE, wrong)
    with pytest.raises(ValueError, match="no minimum"):
        await revocations.require_all(2)


async def test_a_watcher_that_follows_every_change_has_what_the_list_says(store: Store) -> None:
    revocations, followed, late = Revocations(store), Followed(store), Followed(store)
    for change in (
        revocations.require(ONE, 1),
        revocations.add(OTHER),
        revocations.require_all(1),
        revocations.require(ONE, 7),
        revocations.remove(OTHER),
        revocations.require_all(0),
        revocations.require(OTHER, 1),
    ):
        await change
        access = await followed.look()
        assert access == Access(await revocations.read(), await revocations.minima())
    assert await late.look() == access
    assert followed.changes[2].everyone and not followed.changes[4].everyone and followed.changes[5].everyone
    assert followed.changes[3] == Change(frozenset(), frozenset({ONE}), everyone=False)


async def test_what_another_version_of_fleet_revokes_is_seen_too(store: Store, redis_url: str) -> None:
    followed = Followed(store)
    await Revocations(store).add(ONE)
    await followed.look()
    # That version changes the set and its number, and keeps no log.
    await store.client.sadd("{revoked}:macs", OTHER)  # type: ignore[misc]
    await store.client.incr("{revoked}:version")
    assert (await followed.look()).revoked == {ONE, OTHER}
    await Revocations(store).remove(ONE)
    assert (await followed.look()).revoked == {OTHER}


async def test_a_redis_that_lost_the_list_takes_nothing_back(store: Store) -> None:
    revocations, followed = Revocations(store), Followed(store)
    await revocations.add(ONE)
    await revocations.require(OTHER, 4)
    await revocations.require_all(1)
    before = await followed.look()
    await store.client.flushall()
    assert await followed.look() == before
    await revocations.add(OTHER)
    assert (await followed.look()).revoked == {ONE, OTHER}
    await revocations.add(ONE)
    await revocations.remove(ONE)
    assert (await followed.look()).revoked == {OTHER}, "who unrevokes it means it"


async def test_a_watcher_that_missed_more_than_the_log_holds_reads_all(store: Store) -> None:
    revocations, followed = Revocations(store), Followed(store)
    await revocations.add(ONE)
    await followed.look()
    await revocations.add(OTHER)
    await revocations.require(ONE, 2)
    await store.client.xtrim("{revoked}:log", maxlen=1)
    assert await followed.look() == Access(frozenset({ONE, OTHER}), Minima(0, {ONE: 2}))
