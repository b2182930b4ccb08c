"""Databases with the newest tables, copied from one that was migrated once: to migrate costs 0.2 seconds of a core."""

import asyncio
import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.migrate import upgrade
from tests.support.postgres_server import PostgresServer

_TEMPLATE = "fleet_migrated"
_sqlite: list[bytes] = []
_postgres: set[str] = set()
"""Servers that have the template."""
_numbers = itertools.count(1)


async def migrated_sqlite(file: Path) -> str:
    """Make a SQLite with the newest tables; return its address."""
    if not _sqlite:
        with TemporaryDirectory() as folder:
            original = Path(folder) / "fleet.db"
            await _migrate(_address(original))
            _sqlite.append(await asyncio.to_thread(original.read_bytes))
    _write(file, _sqlite[0])
    return _address(file)


def _write(file: Path, content: bytes) -> None:
    file.touch(0o600)
    file.write_bytes(content)


async def migrated_postgres(server: PostgresServer) -> str:
    """Make a database with the newest tables; return its address."""
    if server.url() not in _postgres:
        await _migrate(await _create(server, _TEMPLATE, "template1"))
        _postgres.add(server.url())
    return await _create(server, _next_name(), _TEMPLATE)


async def empty_postgres(server: PostgresServer) -> str:
    """Make a database that holds nothing; return its address."""
    return await _create(server, _next_name(), "template1")


def _next_name() -> str:
    # Each gets a new one: to drop a database costs as much as to make it, and the server ends with the tests.
    return f"fleet_{next(_numbers)}"


async def _create(server: PostgresServer, name: str, template: str) -> str:
    engine = create_async_engine(database_url(server.url()), isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        # To copy its files costs less than to write each of their pages to the log.
        await connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
    await engine.dispose()
    return server.url(name)


def _address(file: Path) -> str:
    return f"sqlite:///{file}"


async def _migrate(address: str) -> None:
    database = Database(database_url(address))
    await upgrade(database)
    await database.close()
