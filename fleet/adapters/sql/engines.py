"""Connections to a database of either kind, and the options that fleet sets."""

import asyncio
from threading import Thread
from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from fleet.adapters.sql.sqlite_connections import PatientConnection, opened
from fleet.adapters.sql.sqlite_threads import SqliteThreads
from fleet.adapters.sql.stored_json import read_stored
from fleet.ground.errors import ConfigError, install_hint

WAIT_SECONDS = 5.0
"""Limit of the wait for a connection, and of SQLite's wait for a lock."""
READERS = 4
STATEMENT_SECONDS = 10


def sqlite_engine(url: URL, connections: int, workers: WeakSet[Thread], *, write: bool) -> AsyncEngine:
    """Return the connections to a file of SQLite.

    Args:
        url: Of the file.
        connections: At most so many.
        workers: Is given the thread of each connection.
        write: Whether they may change the file.
    """

    def connect(path: str, **options: Any) -> PatientConnection:
        connection = PatientConnection(lambda: opened(path, write=write, **options), write=write)
        workers.add(connection._thread)  # noqa: SLF001 - the driver names its thread nowhere else
        return connection

    options = _sqlite_options(connections)
    options["connect_args"]["async_creator_fn"] = connect
    engine = create_async_engine(url, **options)
    _prepare(engine.sync_engine, "BEGIN IMMEDIATE" if write else "BEGIN")
    return engine


def sqlite_threads(url: URL) -> SqliteThreads:
    """Return the threads that read a file of SQLite."""
    options = _sqlite_options(READERS)
    engine = create_engine(url.set(drivername="sqlite"), **options)

    @event.listens_for(engine, "do_connect")
    def connect(_: object, __: object, arguments: Any, named: Any) -> Any:
        return opened(*arguments, write=False, **named)

    _prepare(engine, "BEGIN")
    return SqliteThreads(engine, READERS)


def _sqlite_options(connections: int) -> dict[str, Any]:
    # The driver would begin transactions by itself, and as readers: a reader that becomes a writer fails.
    driver = {"timeout": WAIT_SECONDS, "isolation_level": None}
    pool = {"pool_size": connections, "max_overflow": 0, "pool_timeout": WAIT_SECONDS}
    return {**pool, "connect_args": driver, "json_deserializer": read_stored}


def _prepare(engine: Engine, begin: str = "") -> None:
    if begin:

        @event.listens_for(engine, "begin")
        def begin_(connection: Any) -> None:
            connection.exec_driver_sql(begin)

    @event.listens_for(engine, "handle_error")
    def keep(failure: Any) -> None:
        # A cancelled statement has ended, or ends before the next one of its connection begins.
        if isinstance(failure.original_exception, asyncio.CancelledError):
            failure.is_disconnect = False


def postgres_engine(url: URL) -> AsyncEngine:
    """Return the connections to PostgreSQL.

    Raises:
        ConfigError: Its driver is not installed.
    """
    try:
        engine = create_async_engine(
            url,
            pool_size=2 * READERS,
            max_overflow=0,
            pool_timeout=WAIT_SECONDS,
            pool_pre_ping=True,
            json_deserializer=read_stored,
            connect_args={
                "timeout": WAIT_SECONDS,
                "command_timeout": STATEMENT_SECONDS,
                "server_settings": {
                    "application_name": "fleet",
                    "statement_timeout": f"{STATEMENT_SECONDS}s",
                    # A plan for any value does not know how narrow the window of a walk is: ten times as slow.
                    "plan_cache_mode": "force_custom_plan",
                    # Compiling costs more than it gains on statements that look at some thousand rows.
                    "jit": "off",
                },
            },
        )
    except ModuleNotFoundError as error:
        raise ConfigError(f"PostgreSQL needs asyncpg: {install_hint('postgres')}") from error
    _prepare(engine.sync_engine)
    return engine
