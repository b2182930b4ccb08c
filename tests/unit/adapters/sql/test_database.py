"""Addresses of databases, and databases that do not answer."""

from pathlib import Path

import pytest

from fleet.adapters.sql import database as database_module
from fleet.adapters.sql import engines
from fleet.adapters.sql.database import Database, database_url
from fleet.ground.errors import ConfigError, Unavailable


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("sqlite:////var/lib/fleet/fleet.db", "sqlite+aiosqlite"),
        ("postgresql://fleet:secret@db/fleet", "postgresql+asyncpg"),
        ("postgres://db/fleet", "postgresql+asyncpg"),
        ("postgresql+psycopg://db/fleet", "postgresql+asyncpg"),
    ],
)
def test_an_address_gets_our_driver(text: str, driver: str) -> None:
    assert database_url(text).drivername == driver


@pytest.mark.parametrize("text", ["", "fleet.db", "mysql://fleet:secret@db/fleet", "sqlite://", "sqlite:///:memory:"])
def test_a_wrong_address_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="FLEET_DATABASE_URL") as caught:
        database_url(text)
    assert "secret" not in str(caught.value)


async def test_a_database_that_is_away_is_said_without_its_password(unused_tcp_port: int) -> None:
    database = Database(database_url(f"postgresql://fleet:secret@127.0.0.1:{unused_tcp_port}/fleet"))
    with pytest.raises(Unavailable, match="does not answer") as caught:
        async with database.reading():
            pass
    assert "secret" not in str(caught.value)
    await database.close()


async def test_the_wait_for_the_only_writer_ends_with_a_plain_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (database_module, engines):
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    database = Database(database_url(f"sqlite:///{tmp_path}/fleet.db"))
    try:
        async with database.writing():
            with pytest.raises(Unavailable) as caught:
                async with database.writing():
                    pass
        async with database.writing():
            pass
    finally:
        # The process would else wait for the thread of the connection.
        await database.close()
    assert str(caught.value) == "the database is busy: no connection got free within 0.01 s"
