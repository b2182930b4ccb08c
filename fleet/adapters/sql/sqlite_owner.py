"""One control process for a file of SQLite, which only its user may read."""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fleet.ground.errors import ConfigError

log = logging.getLogger(__name__)

_MODE = 0o600


@contextmanager
def owning(database: Path) -> Iterator[None]:
    """Keep a second control process away from a file of SQLite during the block.

    The system ends the lock with the process, however that ends.

    Raises:
        ConfigError: Another process has the file, or the folder cannot be written.
    """
    # Beside the file itself, whatever link names it.
    file = database.resolve()
    path = file.with_name(file.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
        _make_private(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            raise ConfigError(f"process {owner} uses {database}; more than one needs PostgreSQL") from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def keep_private(database: Path) -> None:
    """Make a file of SQLite that only its user may read; take a file that is there, and those beside it, from others.

    SQLite gives the files that it makes beside it the same mode.

    Raises:
        ConfigError: The file cannot be made.
    """
    database = database.resolve()
    try:
        with suppress(FileExistsError):
            os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
        # The files that are there are not opened: closing them would end the locks of SQLite in this process.
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                _make_private(database.with_name(database.name + end))
    except OSError as error:
        raise ConfigError(f"cannot write {database}: {error.strerror}") from error


def _make_private(path: Path) -> None:
    if not path.stat().st_mode & 0o077:
        return
    try:
        path.chmod(_MODE)
    except PermissionError:
        log.warning("others may be able to read a file of the database", extra={"path": str(path)})
