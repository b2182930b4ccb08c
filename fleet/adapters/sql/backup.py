"""Copies of a database in a file of SQLite. PostgreSQL has its own tools."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from fleet.adapters.sql.database import database_url
from fleet.adapters.sql.sqlite_owner import owning
from fleet.ground.errors import ConfigError, Unavailable

_MODE = 0o600


def back_up(text: str, target: Path) -> None:
    """Write a copy of a database; control may run meanwhile.

    Args:
        text: See `database_url`.
        target: A new file.

    Raises:
        ConfigError: The database is no file, there is none, or the target exists or cannot be written.
        Unavailable: The copy could not be made.
    """
    source = _file(text)
    if not source.is_file():
        raise ConfigError(f"there is no database {source}")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
        with closing(sqlite3.connect(source)) as database, closing(sqlite3.connect(target)) as copy:
            database.backup(copy)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"{source} cannot be copied: {error}") from error


def restore(text: str, source: Path) -> None:
    """Put a copy in the place of a database, whole or not at all; control must not run.

    Raises:
        ConfigError: The database is no file, the copy is none of fleet's, or control runs.
    """
    target = _file(text)
    draft = target.with_name(f"{target.name}.restored")
    with owning(target):
        try:
            with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as copy:
                copy.execute("SELECT version_num FROM alembic_version").fetchone()
                draft.unlink(missing_ok=True)
                os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
                with closing(sqlite3.connect(draft)) as new:
                    copy.backup(new)
            for rest in ("-wal", "-shm"):
                target.with_name(target.name + rest).unlink(missing_ok=True)
            draft.replace(target)
        except sqlite3.Error as error:
            raise ConfigError(f"{source} is no copy of control's database: {error}") from error
        except OSError as error:
            raise ConfigError(f"cannot write {target}: {error.strerror}") from error


def _file(text: str) -> Path:
    url = database_url(text)
    if url.get_backend_name() != "sqlite":
        raise ConfigError("FLEET_DATABASE_URL names a server: use pg_dump and pg_restore")
    return Path(url.database or "")
