"""The firmware images for devices: a folder, read again whenever a file in it changes.

    <folder>/<board>/<version>.bin           the image
    <folder>/<board>/<version>.bin.sha256    its SHA-256, as `sha256sum` writes it
    <folder>/<board>/force                   a version, to which all devices of the board are brought, also downwards

An image is offered only if its checksum is right and it is an ESP32 application that reports the version in its file
name: with another version a device would upgrade at every start.
"""

import asyncio
import hashlib
import logging
from dataclasses import dataclass, field
from pathlib import Path

from fleet.ground.tasks import Backoff, keep_running
from fleet.wire.firmware import HEAD_BYTES, Version, image_version, is_board, parse_version

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LARGEST = 64 * 1024 * 1024
"""Bytes of an image; the largest flash of any board holds half of it."""

Stamp = tuple[int, int]
"""Of a file: when it was changed, and its size."""


@dataclass(frozen=True, slots=True)
class Image:
    """A valid image; `name` is its version as written in the file name."""

    board: str
    name: str
    version: Version
    path: Path
    sha256: str
    stamp: Stamp

    def is_unchanged(self) -> bool:
        """Whether the file is still the one that was checked."""
        try:
            return _stamp(self.path) == self.stamp
        except OSError:
            return False


@dataclass(slots=True)
class _Board:
    images: dict[str, Image] = field(default_factory=dict)
    forced: str = ""

    def best(self) -> Image | None:
        if self.forced:
            return self.images.get(self.forced)
        return max(self.images.values(), key=lambda image: image.version, default=None)


class FirmwareImages:
    """Chooses the image for a device.

    Args:
        folder: The folder with the images; None offers none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._boards: dict[str, _Board] = {}
        self._looked: dict[Path, tuple[Stamp, Stamp, Image | None, str]] = {}

    async def run(self) -> None:
        """Follow the folder until cancelled."""
        if self._folder is None:
            await asyncio.get_running_loop().create_future()
        await keep_running("firmware folder", self._watch, Backoff(limit=LOOK_SECONDS))

    def offer(self, board: str, running: Version | None) -> Image | None:
        """Return the image that a device of a board should install instead of its running version, if any."""
        shelf = self._boards.get(board)
        best = shelf.best() if shelf and running else None
        if shelf is None or best is None or running is None or best.version == running:
            return None
        return best if shelf.forced or best.version > running else None

    def is_forced(self, image: Image) -> bool:
        """Whether a device must install the image even if it runs a higher version."""
        shelf = self._boards.get(image.board)
        return shelf is not None and shelf.forced == image.name

    def find(self, board: str, name: str) -> Image | None:
        """Return an image by its names; names with path separators match nothing."""
        shelf = self._boards.get(board)
        return shelf.images.get(name) if shelf else None

    def faults(self, board: str) -> dict[str, str]:
        """Return why images of a board are not offered, by the names of their files."""
        return {path.name: fault for path, (*_, fault) in self._looked.items() if fault and path.parent.name == board}

    def look(self) -> None:
        """Read the folder; read only changed files completely.

        Raises:
            OSError: It cannot be read.
        """
        if self._folder is None:
            return
        folders = [one for one in sorted(self._folder.iterdir()) if one.is_dir() and is_board(one.name)]
        self._boards = {one.name: self._look_at(one) for one in folders}

    async def _watch(self) -> None:
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_SECONDS)

    def _look_at(self, folder: Path) -> _Board:
        board = _Board()
        for path in sorted(folder.glob("*.bin")):
            image = self._check(folder.name, path)
            if image is not None:
                board.images[image.name] = image
        force = folder / "force"
        board.forced = force.read_text(encoding="utf-8", errors="replace").strip() if force.is_file() else ""
        return board

    def _check(self, board: str, path: Path) -> Image | None:
        """Return a file's image if it is valid; otherwise log the reason once."""
        summed = path.with_name(f"{path.name}.sha256")
        stamp, sum_stamp = _stamp(path), _stamp(summed) if summed.is_file() else (0, 0)
        known = self._looked.get(path)
        if known is None or known[:2] != (stamp, sum_stamp):
            image, fault = _read(board, path, summed, stamp)
            if fault:
                log.warning("firmware is not offered", extra={"file": str(path), "reason": fault})
            known = self._looked[path] = (stamp, sum_stamp, image, fault)
        return known[2]


def _read(board: str, path: Path, summed: Path, stamp: Stamp) -> tuple[Image | None, str]:
    """Return an image, or the reason why the file is not a valid one."""
    version = parse_version(path.stem)
    if version is None:
        return None, "its name is no version such as 2.5.0"
    if stamp[1] > LARGEST:
        return None, f"it is larger than {LARGEST} bytes"
    if not summed.is_file():
        return None, f"there is no {summed.name}"
    wanted = summed.read_text(encoding="utf-8", errors="replace").split()[:1]
    digest = hashlib.sha256()
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        digest.update(head)
        while block := file.read(1 << 20):
            digest.update(block)
    if wanted != [digest.hexdigest()]:
        return None, "its SHA-256 is another"
    reports = image_version(head)
    if reports != path.stem:
        reason = f"reports version {reports!r}" if reports is not None else "is no ESP32 application"
        return None, f"it {reason}"
    return Image(board, path.stem, version, path, digest.hexdigest(), stamp), ""


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
