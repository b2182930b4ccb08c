"""One control process for a file of SQLite."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.ground.errors import ConfigError


@contextmanager
def owning(database: Path) -> Iterator[None]:
    """Keep a second control process away from a file of SQLite during the block.

    The system ends the lock with the process, however that ends.

    Raises:
        ConfigError: Another process has the file, or the folder cannot be written.
    """
    path = database.with_name(database.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
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
