"""Files that devices download, in a folder: each is named by its SHA-256, so that a file never changes."""

import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import threading
from pathlib import Path
from types import TracebackType

log = logging.getLogger(__name__)

RESERVE_BYTES = 128 * 1024 * 1024
"""Space that is left to others of the disk: the database and Redis may be on the same one."""
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ImageStore:
    """The files of a folder, which control writes and the api reads.

    Args:
        folder: Need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, int, int, bool]] = {}
        """What each file was when it was read: its number, size, time of change, and whether it was sound."""
        self._reading = threading.Lock()

    def path(self, sha256: str) -> Path | None:
        """Return where a file is; None if there is none of this name, or another one than its name says.

        It blocks: a file is read at the first time, and after each change.
        """
        path = self._folder / f"{sha256}.bin"
        if not _NAME.fullmatch(sha256):
            return None
        with self._reading:
            try:
                about = path.stat()
                found = about.st_ino, about.st_size, about.st_mtime_ns
                if self._known.get(sha256, ())[:3] != found:
                    self._known[sha256] = (*found, _is_sound(path, sha256))
            except OSError:
                self._known.pop(sha256, None)
                return None
            return path if self._known[sha256][3] else None

    def write(self) -> "ImageWriter":
        """Return a writer of one new file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return ImageWriter(self._folder)

    def remove(self, sha256: str) -> None:
        """Delete a file."""
        if _NAME.fullmatch(sha256):
            (self._folder / f"{sha256}.bin").unlink(missing_ok=True)


class ImageWriter:
    """Writes a file; outside its block it is only there if it was kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f".{secrets.token_hex(8)}.part"
        self._file = self._path.open("xb")
        self._digest = hashlib.sha256()

    def __enter__(self) -> "ImageWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    @property
    def sha256(self) -> str:
        """The name of what was written so far."""
        return self._digest.hexdigest()

    def add(self, piece: bytes) -> None:
        """Write the next bytes.

        Raises:
            OSError: The disk is full (`ENOSPC`), but for the space that is left to others.
        """
        if shutil.disk_usage(self._folder).free < RESERVE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._digest.update(piece)
        self._file.write(piece)

    def keep(self) -> None:
        """Give the file its name."""
        self._file.close()
        self._path.replace(self._folder / f"{self.sha256}.bin")


def _is_sound(path: Path, sha256: str) -> bool:
    with path.open("rb") as file:
        sound = hashlib.file_digest(file, "sha256").hexdigest() == sha256
    if not sound:
        log.error("file of an image is damaged", extra={"file": str(path)})
    return sound
