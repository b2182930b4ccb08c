"""A database: its address, its connections, and its one writer where that is SQLite."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoResultFound, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import QueuePool

from fleet.adapters.sql.engines import (
    READERS,
    STATEMENT_SECONDS,
    WAIT_SECONDS,
    postgres_engine,
    sqlite_engine,
    sqlite_threads,
)
from fleet.adapters.sql.reading_places import ReadingPlaces
from fleet.adapters.sql.sqlite_threads import SqliteThreads
from fleet.ground.errors import ConfigError, SlowQuery, Unavailable

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
T = TypeVar("T")
_LINK = re.compile(r'^((?:down_)?revision) = "(\w+)"', re.MULTILINE)
"""A line of a migration."""
FAILED_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.02
_CANCELLED = "57014"
"""What PostgreSQL says when `statement_timeout` ends a statement."""
LOOK_SECONDS = 5.0
"""Limit of a search: it is what users may make slow."""


def database_url(address: str) -> URL:
    """Return the address of a database, with the driver that fleet uses.

    Args:
        address: `sqlite:///var/lib/fleet/fleet.db` or `postgresql://user:password@host/name`.

    Raises:
        ConfigError: It is no such address. The message does not repeat it: it may hold a password.
    """
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise ConfigError("FLEET_DATABASE_URL is no address of a database") from error
    driver = _DRIVERS.get(url.get_backend_name())
    if driver is None:
        raise ConfigError("FLEET_DATABASE_URL must begin with sqlite:/// or postgresql://")
    if driver.startswith("sqlite") and url.database in (None, "", ":memory:"):
        raise ConfigError("FLEET_DATABASE_URL must name the file of SQLite")
    return url.set(drivername=driver)


class Database:
    """The connections to a database.

    SQLite has one writer at a time, so all writes share one connection; its readers see the last committed state.
    """

    def __init__(self, url: URL) -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._workers: WeakSet[Thread] = WeakSet()
        if self.is_sqlite:
            self._writing = sqlite_engine(url, 1, self._workers, write=True)
            self._reading = sqlite_engine(url, READERS, self._workers, write=False)
            self._threads: SqliteThreads | None = sqlite_threads(url)
        else:
            self._writing = self._reading = postgres_engine(url)
            self._threads = None
        self._write_failed: float | None = None
        places = READERS if self.is_sqlite else 2 * READERS
        self._places = ReadingPlaces(places, places // 2)

    @property
    def engine(self) -> AsyncEngine:
        """The engine of the writer, for migrations."""
        return self._writing

    @asynccontextmanager
    async def reading(self, seconds: float | None = None) -> AsyncIterator[AsyncConnection]:
        """Give a connection for statements that change nothing.

        Args:
            seconds: Limit of the block, in place of `STATEMENT_SECONDS`; its statement is ended then.

        Raises:
            SlowQuery: The block took longer.
            Unavailable: The database does not answer.
        """
        with _translating():
            limit = STATEMENT_SECONDS if seconds is None else seconds
            async with self._reading.connect() as connection, _limited(limit):
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction, which is committed after the block.

        Raises:
            Unavailable: The database does not answer, or does not get free.
        """
        try:
            with _translating():
                async with self._writing.begin() as connection:
                    yield connection
        except Unavailable as error:
            if isinstance(error.__cause__, SQLAlchemyError):
                self._write_failed = time.monotonic()
            raise
        self._write_failed = None

    @property
    def writes_fail(self) -> bool:
        """Whether the last change failed, and that some seconds ago at most."""
        return self._write_failed is not None and time.monotonic() - self._write_failed < FAILED_SECONDS

    async def look(self, read: Callable[[Connection], T], *, tenant: int = 0, seconds: float | None = None) -> T:
        """Run a function that reads on one connection, and return its result.

        It suits several statements in a row: with SQLite they all run in one thread. Statements of `reading` each
        change threads four times there, which costs more than most of them.

        Args:
            read: The function.
            tenant: Who reads: one tenant gets half of the places.
            seconds: Limit of the function, in place of `LOOK_SECONDS`; its statement is ended then.

        Raises:
            SlowQuery: The function took longer.
            Unavailable: The database does not answer, or all places are taken.
        """
        await self._places.take(tenant, WAIT_SECONDS)
        seconds = LOOK_SECONDS if seconds is None else seconds
        with _translating():
            if self._threads is not None:
                async with _limited(seconds):
                    return await self._threads.run(read, partial(self._places.give, tenant))
            try:
                async with self._reading.connect() as connection, _limited(seconds):
                    return await connection.run_sync(read)
            finally:
                self._places.give(tenant)

    async def ping(self) -> None:
        """Check that the database answers.

        Raises:
            Unavailable: It does not.
        """
        async with self.reading() as connection:
            await connection.execute(select(1))

    async def revision(self) -> str | None:
        """Return the revision of the tables, without alembic; None if there are none.

        Raises:
            Unavailable: The database does not answer, or, with SQLite, has no tables.
        """
        try:
            async with self.reading() as connection:
                found = await connection.execute(text("SELECT version_num FROM alembic_version"))
                return str(found.scalar_one())
        except (DBAPIError, NoResultFound):
            return None

    async def is_newest(self) -> bool:
        """Return whether the tables have the form of the newest migration."""
        try:
            return await self.revision() == _newest()
        except Unavailable:  # or not there: SQLite has one error for both
            return False

    async def close(self) -> None:
        """Close all connections, and wait until their files are closed, too."""
        for engine in {self._writing, self._reading}:
            await _returned(engine)
            await engine.dispose()
        # A cancelled statement runs on in its thread and keeps its lock: the next owner of the file would meet it.
        for worker in list(self._workers):
            await asyncio.to_thread(worker.join, STATEMENT_SECONDS)
        if self._threads is not None:
            await self._threads.close()


async def _returned(engine: AsyncEngine) -> None:
    """Wait until all connections are back: only then can they be closed."""
    pool = engine.pool
    with suppress(TimeoutError):
        async with asyncio.timeout(STATEMENT_SECONDS):
            while isinstance(pool, QueuePool) and pool.checkedout():  # noqa: ASYNC110 - a pool has no event for it
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _newest() -> str:
    """Return the migration that no other one follows, without alembic."""
    folder = Path(__file__).parent / "migrations" / "versions"
    links: list[tuple[str, str]] = [
        line for path in folder.glob("r*.py") for line in _LINK.findall(path.read_text("utf-8"))
    ]
    followed = {number for kind, number in links if kind == "down_revision"}
    return str(next(number for kind, number in links if kind == "revision" and number not in followed))


@asynccontextmanager
async def _limited(seconds: float) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise SlowQuery(f"the database took longer than {seconds:.0f} s for a query") from error


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except PoolTimeoutError as error:
        raise Unavailable(f"the database is busy: no connection got free within {WAIT_SECONDS:g} s") from error
    except (OperationalError, InterfaceError, OSError, TimeoutError) as error:
        raise Unavailable(f"the database does not answer: {_reason(error)}") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") == _CANCELLED:
            raise SlowQuery("the database took too long for a query") from error
        # asyncpg's errors: no connection, no more of them, the server starts or stops.
        if error.connection_invalidated or str(getattr(error.orig, "sqlstate", "")).startswith(("08", "53", "57P")):
            raise Unavailable(f"the database does not answer: {_reason(error)}") from error
        raise


def _reason(error: Exception) -> str:
    """Return one line that holds neither the statement nor its values."""
    cause = getattr(error, "orig", None) or error
    return (str(cause).splitlines() or [type(cause).__name__])[0] or type(cause).__name__
