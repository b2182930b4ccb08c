"""Reading a text file that other processes may change, and writing one atomically."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from fleet.ground.errors import ConfigError


class WatchedFile:
    """Returns a file's text, and detects its changes.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None

    def read(self) -> str:
        """Return the text.

        Raises:
            ConfigError: It cannot be read, or is no text.
        """
        try:
            self._stamp = self._look()
            return self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path}: no text") from error

    def news(self) -> str | None:
        """Return the text if it changed since the last read, else None.

        Raises:
            ConfigError: It cannot be read, or is no text.
        """
        try:
            changed = self._look() != self._stamp
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error
        return self.read() if changed else None

    def _look(self) -> tuple[int, int, int]:
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino


def write_whole(path: Path, text: str | Iterable[str], mode: int = 0o644) -> None:
    """Write a file atomically: readers see the old or the new text, never a part. A long text may be given in lines.

    Raises:
        OSError: It cannot be written; the old one stays.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
