"""A database of either kind, empty or with the newest tables. SQLAlchemy is imported late: most tests need no SQL."""

import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.patience import SQL, lengthen
from tests.support.process import running

if TYPE_CHECKING:
    from fleet.adapters.sql.database import Database
    from tests.support.postgres_server import PostgresServer

HERE = Path(__file__).parent
KINDS = ("sqlite", "postgresql")
ABOVE = (
    "control/*.py",
    "sql/test_desired_states.py",
    "sql/test_firmware_jobs.py",
    "sql/test_job_shadow.py",
    "sql/test_job_tasks.py",
    "sql/test_jobs.py",
    "sql/test_rotation_job.py",
)
"""Tests of what works with either database through the adapter: routes, and the work of the leader."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run such a test with one database, which its name decides, and with the other one in the long run."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.path.is_relative_to(HERE):
            path, kind = item.path.relative_to(HERE), item.callspec.params.get("database")
            chosen = KINDS[zlib.crc32(item.originalname.encode()) % 2]
            if kind not in (None, chosen) and any(path.match(pattern) for pattern in ABOVE):
                item.add_marker(pytest.mark.slow)


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


@pytest.fixture(params=KINDS)
async def database_text(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a database that holds nothing."""
    lengthen(monkeypatch, SQL)
    from tests.support.migrated import empty_postgres

    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fleet.db'}"
    return await empty_postgres(request.getfixturevalue("postgres_server"))


@pytest.fixture(params=KINDS)
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator["Database"]:
    """A database with the newest tables."""
    from fleet.adapters.sql.database import Database, database_url
    from tests.support.migrated import migrated_postgres, migrated_sqlite

    lengthen(monkeypatch, SQL)
    if request.param == "sqlite":
        address = await migrated_sqlite(tmp_path / "fleet.db")
    else:
        address = await migrated_postgres(request.getfixturevalue("postgres_server"))
    opened = Database(database_url(address))
    yield opened
    await opened.close()
