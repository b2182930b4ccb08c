"""Files that devices download, in a folder: each is named by its SHA-256, so that a file never changes."""

import hashlib
import re
import secrets
from pathlib import Path
from types import TracebackType

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ImageStore:
    """The files of a folder, which control writes and the api reads.

    Args:
        folder: Need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, sha256: str) -> Path | None:
        """Return where a file is; None if there is none of this name."""
        found = self._folder / f"{sha256}.bin"
        return found if _NAME.fullmatch(sha256) and found.is_file() else None

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
        """Write the next bytes."""
        self._digest.update(piece)
        self._file.write(piece)

    def keep(self) -> None:
        """Give the file its name."""
        self._file.close()
        self._path.replace(self._folder / f"{self.sha256}.bin")
