"""Connections to a file of SQLite for asyncio: each has a thread in which its statements run."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

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

    def cursor(self) -> "OneTripCursor":  # type: ignore[override] # its block gives the driver's cursor
        """Return a cursor for one statement; SQLAlchemy uses it as that of the driver."""
        return OneTripCursor(self)

    async def run_statement(self, run: Callable[[sqlite3.Cursor], object]) -> "StatementResult":
        """Run a statement and fetch all of its rows, in one trip to the thread."""
        found: StatementResult = await self._execute(lambda: _run_statement(self._conn, run))
        return found

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
            # The task may be cancelled again and again meanwhile.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work], timeout=_AGAIN_SECONDS)
        if not work.cancelled():
            work.exception()


class StatementResult(NamedTuple):
    """What a statement left, as a cursor has it."""

    rows: list[Any]
    description: Any = None
    rowcount: int = -1
    lastrowid: int | None = None


class OneTripCursor:
    """A cursor that goes to the thread of its connection once for each statement.

    The driver's goes there four times, to make a cursor, to run the statement, to fetch and to close; changing threads
    costs more than most statements.

    Args:
        connection: Runs the statements.
    """

    arraysize = 1

    def __init__(self, connection: PatientConnection) -> None:
        self._connection, self._found = connection, StatementResult([])

    async def __aenter__(self) -> "OneTripCursor":
        return self

    @property
    def description(self) -> Any:
        """The columns of the rows; None if the statement has none."""
        return self._found.description

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        return self._found.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The number of the last row that was inserted."""
        return self._found.lastrowid

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> "OneTripCursor":
        self._found = await self._connection.run_statement(lambda cursor: cursor.execute(statement, parameters))
        return self

    async def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> "OneTripCursor":
        self._found = await self._connection.run_statement(lambda cursor: cursor.executemany(statement, parameters))
        return self

    async def fetchall(self) -> list[Any]:
        return self._found.rows

    async def close(self) -> None:
        """Do nothing: what the thread used is closed."""


def _run_statement(connection: sqlite3.Connection, run: Callable[[sqlite3.Cursor], object]) -> StatementResult:
    cursor = connection.cursor()
    try:
        run(cursor)
        rows = cursor.fetchall() if cursor.description else []
        return StatementResult(rows, cursor.description, cursor.rowcount, cursor.lastrowid)
    finally:
        cursor.close()


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
