"""The revocation list, on a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fleet.store.access import AccessWatch
from fleet.store.connect import Store
from fleet.store.revocations import Revocations
from fleet.tasks import running
from fleet.wire.identity import Keys
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
    keys, expelled, path = Keys("k1:a-key-of-this-test-only"), list[frozenset[str]](), tmp_path / "revoked"
    mine, revocations = keys.issue("device", ONE), Revocations(store)
    assert await revocations.add(OTHER)
    async with running("access", AccessWatch(store, keys, path, expelled.append).run), asyncio.timeout(10):
        await met(path.is_file)
        assert path.read_text() == f"{OTHER}\n"
        assert keys.verify(mine.client_id, mine.username, mine.password) == "device"
        assert await revocations.add(ONE) and not await revocations.add(ONE)
        await met(lambda: path.read_text() == f"{ONE}\n{OTHER}\n")
        assert keys.verify(mine.client_id, mine.username, mine.password) is None
        assert expelled == [frozenset({OTHER}), frozenset({ONE})]
        assert await revocations.remove(ONE) and not await revocations.remove(ONE)
        await met(lambda: path.read_text() == f"{OTHER}\n")
    assert keys.verify(mine.client_id, mine.username, mine.password) == "device"


async def test_a_file_that_cannot_be_written_is_written_as_soon_as_it_can(store: Store, tmp_path: Path) -> None:
    keys, path = Keys("k1:a-key-of-this-test-only"), tmp_path / "later" / "revoked"
    await Revocations(store).add(ONE)
    async with running("access", AccessWatch(store, keys, path).run), asyncio.timeout(10):
        await met(lambda: ONE in keys.revoked)
        path.parent.mkdir()
        await met(path.is_file)
    assert path.read_text() == f"{ONE}\n"
