"""Brings the tables to the newest form.

Migrations only go forward, and the version of fleet before goes on working with what they leave (expand, contract).
"""

import logging

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from fleet.adapters.sql.database import Database
from fleet.ground.errors import ConfigError

_LOCK = 0x666C656574
"""PostgreSQL's advisory lock: of several processes that start, one migrates."""


async def upgrade(database: Database) -> str:
    """Run the migrations that are missing; return the revision that the tables then have.

    Raises:
        ConfigError: A newer version of fleet made these tables.
        Unavailable: The database does not answer.
    """
    async with database.writing() as connection:
        return await connection.run_sync(_upgrade)


async def revision(database: Database) -> str | None:
    """Return the revision of the tables; None where there are none.

    Raises:
        Unavailable: The database does not answer.
    """
    async with database.reading() as connection:
        return await connection.run_sync(_revision)


def newest() -> str:
    """Return the revision that this version of fleet needs."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def _upgrade(connection: Connection) -> str:
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    config, present = _config(), _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if present is not None and present not in known:
        raise ConfigError(f"a newer fleet made this database (revision {present}); use that version, or a backup")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return _revision(connection) or ""


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "fleet.adapters.sql:migrations")
    config.set_main_option("path_separator", "os")
    return config
