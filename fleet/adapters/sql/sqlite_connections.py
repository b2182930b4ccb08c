"""Connections to a file of SQLite for asyncio: each has a thread in which its statements run."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import aiosqlite

_AGAIN_SECONDS = 0.05
"""Between two interrupts: one that comes before its statement has begun does nothing."""


class PatientConnection(aiosqlite.Connection):
    """A connection whose cancelled statement has ended when the cancellation goes on.

    The driver leaves such a statement to itself, so that its connection cannot be used any more.

    Args:
        connect: Opens the file.
        write: Whether a cancelled statement runs to its end; else it is interrupted.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, write: bool) -> None:
        super().__init__(connect, 64)
        self._write = write

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._running or self._connection is None:
            raise ValueError("Connection closed")
        work = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((work, partial(fn, *args, **kwargs)))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await self._end(work)
            raise

    async def rollback(self) -> None:
        """Roll back; a cancellation goes on afterwards, at the next wait. The pool would else lose the connection."""
        task = asyncio.current_task()
        try:
            await super().rollback()
        except asyncio.CancelledError:
            if task is None:
                raise
            task.uncancel()
            asyncio.get_running_loop().call_soon(task.cancel)

    async def _end(self, work: "asyncio.Future[Any]") -> None:
        while not work.done():
            if not self._write and self._connection is not None:
                self._connection.interrupt()
            # Whoever cancels may do so again and again.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work], timeout=_AGAIN_SECONDS)
        if not work.cancelled():
            work.exception()


def opened(path: str, *, write: bool, **options: Any) -> sqlite3.Connection:
    """Open a file of SQLite as fleet uses it.

    Args:
        path: Of the file.
        write: Whether it may be changed.
        options: Of `sqlite3.connect`.
    """
    connection: sqlite3.Connection = sqlite3.connect(path, **options)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
        connection.execute(f"PRAGMA {pragma}").close()
    if not write:
        connection.execute("PRAGMA query_only=ON").close()
    return connection
