"""Files of a package of npm, as its publisher made it."""

import base64
import hashlib
import shutil
import subprocess
import tarfile
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

LIMIT = 240.0


class NoPackage(Exception):
    """The package cannot be had here: there is no npm, or no network."""


@cache
def read_package(name: str, version: str, integrity: str) -> dict[str, bytes]:
    """Return the files of a package by their paths in it.

    Raises:
        NoPackage: It cannot be had.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NoPackage("npm is not installed")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", f"{name}@{version}", "--silent"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise NoPackage("npm does not answer in time") from None
        if done.returncode:
            raise NoPackage(f"npm has no {name} now: {done.stderr.decode()[:200]}")
        packed = next(Path(folder).glob("*.tgz")).read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    assert found == integrity, f"{name} {version} is another package than the one that was recorded"
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        files = [member for member in archive if member.isfile()]
        return {member.name.removeprefix("package/"): _read(archive, member) for member in files}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(member)
    return opened.read() if opened else b""
