"""Control over HTTP, with a database of either kind.

Control is imported late: that takes a second, and the process that hands tests to others reads this file, too.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fleet.adapters.sql.database import Database
    from tests.support.control_server import ControlStage


@pytest.fixture
async def stage(database: "Database", tmp_path: Path) -> AsyncIterator["ControlStage"]:
    """A running control; its Redis is in memory."""
    from tests.support.control_server import control_stage
    from tests.support.memory_store import memory_store

    store = await memory_store()
    async with control_stage(database, store, tmp_path) as running:
        yield running
    await store.close()


@pytest.fixture
async def empty(database: "Database", tmp_path: Path) -> AsyncIterator["ControlStage"]:
    """A running control without a token; its Redis is in memory."""
    from tests.support.control_server import empty_control
    from tests.support.memory_store import memory_store

    store = await memory_store()
    async with empty_control(database, store, tmp_path) as running:
        yield running
    await store.close()
