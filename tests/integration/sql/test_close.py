"""Closing SQLite, with real threads and a real lock."""

import asyncio
import sqlite3
import threading
from pathlib import Path

from fleet.adapters.sql.database import Database, database_url


async def test_a_cancelled_write_has_left_the_file_when_close_returns(tmp_path: Path) -> None:
    path = tmp_path / "control.db"
    database = Database(database_url(f"sqlite:///{path}"))
    async with database.writing():
        pass
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def write() -> None:
        async with database.writing():
            raise AssertionError("the lock is taken")

    work = asyncio.create_task(write())
    # Both waits only give wrong code the time to show itself: right code passes however long they are.
    await asyncio.wait([work], timeout=0.3)
    work.cancel()
    closing = asyncio.create_task(database.close())
    closed, _ = await asyncio.wait([closing], timeout=0.3)
    assert not closed, "the writer's thread still waits for the lock"
    other.execute("ROLLBACK")
    await closing
    assert work.cancelled()
    assert not [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    other.close()
