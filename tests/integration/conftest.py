"""An empty, migrated database of either kind. SQLAlchemy is imported late: most tests need no SQL."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.process import running

if TYPE_CHECKING:
    from fleet.adapters.sql.database import Database
    from tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    """The PostgreSQL of this test run.

    Its folder is not pytest's: every other run of pytest that starts would close that to PostgreSQL's user.
    """
    from tests.support.postgres_server import PostgresServer

    with (
        tempfile.TemporaryDirectory(prefix="fleet-postgres-") as folder,
        running(PostgresServer(Path(folder))) as server,
    ):
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
async def database_text(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that holds nothing."""
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    from fleet.adapters.sql.database import database_url

    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fleet.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    engine = create_async_engine(database_url(server.url()), isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text("DROP DATABASE IF EXISTS fleet WITH (FORCE)"))
        await connection.execute(text("CREATE DATABASE fleet"))
    await engine.dispose()
    return server.url("fleet")


@pytest.fixture
async def database(database_text: str) -> AsyncIterator["Database"]:
    """A database with the newest tables."""
    from fleet.adapters.sql.database import Database, database_url
    from fleet.adapters.sql.migrate import upgrade

    opened = Database(database_url(database_text))
    await upgrade(opened)
    yield opened
    await opened.close()
