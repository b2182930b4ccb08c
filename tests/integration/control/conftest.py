"""Control over HTTP, with a database of either kind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.adapters.sql.database import Database
from tests.support.control_server import ControlStage, control_stage, empty_control
from tests.support.memory_store import memory_store


@pytest.fixture
async def stage(database: Database, tmp_path: Path) -> AsyncIterator[ControlStage]:
    """A running control; its Redis is in memory."""
    store = await memory_store()
    async with control_stage(database, store, tmp_path) as running:
        yield running
    await store.close()


@pytest.fixture
async def empty(database: Database, tmp_path: Path) -> AsyncIterator[ControlStage]:
    """A running control without a token; its Redis is in memory."""
    store = await memory_store()
    async with empty_control(database, store, tmp_path) as running:
        yield running
    await store.close()
