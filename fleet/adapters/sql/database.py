"""A database: its address, its connections, and its one writer where that is SQLite."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from weakref import WeakSet

import aiosqlite
from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoResultFound, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from fleet.adapters.sql.stored_json import read_stored
from fleet.ground.errors import ConfigError, Unavailable, install_hint

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
T = TypeVar("T")
_LINK = re.compile(r'^((?:down_)?revision) = "(\w+)"', re.MULTILINE)
"""A line of a migration."""
_WAIT_SECONDS = 5.0
"""Limit of the wait for a connection, and of SQLite's wait for a lock."""
_READERS = 4
_STATEMENT_SECONDS = 10


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
            self._writing = _sqlite_engine(url, 1, self._workers, write=True)
            self._reading = _sqlite_engine(url, _READERS, self._workers, write=False)
            self._threads: _Threads | None = _Threads(url)
        else:
            self._writing = self._reading = _postgres_engine(url)
            self._threads = None

    @property
    def engine(self) -> AsyncEngine:
        """The engine of the writer, for migrations."""
        return self._writing

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection for statements that change nothing.

        Raises:
            Unavailable: The database does not answer.
        """
        with _translating():
            async with self._reading.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction, which is committed after the block.

        Raises:
            Unavailable: The database does not answer, or does not get free.
        """
        with _translating():
            async with self._writing.begin() as connection:
                yield connection

    async def look(self, read: Callable[[Connection], T]) -> T:
        """Run a function that reads on one connection, and return its result.

        It suits several statements in a row: with SQLite they all run in one thread. Statements of `reading` each
        change threads four times there, which costs more than most of them.

        Raises:
            Unavailable: The database does not answer.
        """
        with _translating():
            if self._threads is not None:
                return await self._threads.run(read)
            async with self._reading.connect() as connection:
                return await connection.run_sync(read)

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
            await engine.dispose()
        # A cancelled statement runs on in its thread and keeps its lock: the next owner of the file would meet it.
        for worker in list(self._workers):
            await asyncio.to_thread(worker.join, _STATEMENT_SECONDS)
        if self._threads is not None:
            await self._threads.close()


class _Threads:
    """Runs functions that read from SQLite, each in a thread; further ones wait as for a connection."""

    def __init__(self, url: URL) -> None:
        self._engine = create_engine(url.set(drivername="sqlite"), **_sqlite_options(_READERS))
        _prepare_sqlite(self._engine, write=False)
        self._threads = ThreadPoolExecutor(_READERS, "sqlite")
        self._free = asyncio.Semaphore(_READERS)

    async def run(self, read: Callable[[Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_WAIT_SECONDS):
            await self._free.acquire()
        work = self._threads.submit(self._run, read)
        # A thread that nobody waits for any more is free when it ends.
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._free.release))
        return await asyncio.wrap_future(work)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()

    def _run(self, read: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection:
            return read(connection)


def _newest() -> str:
    """Return the migration that no other one follows, without alembic."""
    folder = Path(__file__).parent / "migrations" / "versions"
    links: list[tuple[str, str]] = [
        line for path in folder.glob("r*.py") for line in _LINK.findall(path.read_text("utf-8"))
    ]
    followed = {number for kind, number in links if kind == "down_revision"}
    return str(next(number for kind, number in links if kind == "revision" and number not in followed))


def _sqlite_engine(url: URL, connections: int, workers: WeakSet[Thread], *, write: bool) -> AsyncEngine:
    def connect(*args: Any, **options: Any) -> Any:
        connection = aiosqlite.connect(*args, **options)
        workers.add(connection._thread)  # noqa: SLF001 - the driver names its thread nowhere else
        return connection

    options = _sqlite_options(connections)
    options["connect_args"]["async_creator_fn"] = connect
    engine = create_async_engine(url, **options)
    _prepare_sqlite(engine.sync_engine, write=write)
    return engine


def _sqlite_options(connections: int) -> dict[str, Any]:
    # The driver would begin transactions by itself, and as readers: a reader that becomes a writer fails.
    driver = {"timeout": _WAIT_SECONDS, "isolation_level": None}
    pool = {"pool_size": connections, "max_overflow": 0, "pool_timeout": _WAIT_SECONDS}
    return {**pool, "connect_args": driver, "json_deserializer": read_stored}


def _prepare_sqlite(engine: Engine, *, write: bool) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-65536"):
            cursor.execute(f"PRAGMA {pragma}")
        if not write:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _postgres_engine(url: URL) -> AsyncEngine:
    try:
        return create_async_engine(
            url,
            pool_size=2 * _READERS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
            pool_pre_ping=True,
            json_deserializer=read_stored,
            connect_args={
                "timeout": _WAIT_SECONDS,
                "command_timeout": _STATEMENT_SECONDS,
                "server_settings": {
                    "application_name": "fleet",
                    "statement_timeout": f"{_STATEMENT_SECONDS}s",
                    # A plan for any value does not know how narrow the window of a walk is: ten times as slow.
                    "plan_cache_mode": "force_custom_plan",
                    # Compiling costs more than it gains on statements that look at some thousand rows.
                    "jit": "off",
                },
            },
        )
    except ModuleNotFoundError as error:
        raise ConfigError(f"PostgreSQL needs asyncpg: {install_hint('postgres')}") from error


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeoutError, OSError, TimeoutError) as error:
        raise Unavailable(f"the database does not answer: {_reason(error)}") from error
    except DBAPIError as error:
        # asyncpg's errors: no connection, no more of them, the server starts or stops.
        if error.connection_invalidated or str(getattr(error.orig, "sqlstate", "")).startswith(("08", "53", "57P")):
            raise Unavailable(f"the database does not answer: {_reason(error)}") from error
        raise


def _reason(error: Exception) -> str:
    """Return one line that holds neither the statement nor its values."""
    cause = getattr(error, "orig", None) or error
    return (str(cause).splitlines() or [type(cause).__name__])[0] or type(cause).__name__
