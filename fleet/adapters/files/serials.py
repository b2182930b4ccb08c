"""Serial numbers whose burnt-in keys the operator knows: a file with a line `SERIAL KEY [MAC]` for each.

The key has 64 hexadecimal digits. With a MAC, the serial number is valid for that MAC only.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from fleet.adapters.files.watched_file import WatchedFile
from fleet.ground.errors import ConfigError
from fleet.wire.topics import canonical_mac

log = logging.getLogger(__name__)

_SERIAL = re.compile(r"[!-~]{1,32}")


@dataclass(frozen=True, slots=True)
class Serial:
    """The key of a serial number; an empty `mac` means any MAC."""

    key: bytes
    mac: str = ""


class Serials:
    """Finds serial numbers; follows changes of the file.

    Args:
        path: The file; without one no serial number is known.

    Raises:
        ConfigError: The file cannot be read, or a line is wrong.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = WatchedFile(path) if path else None
        self._known = parse(self._file.read()) if self._file else {}

    def find(self, serial: str) -> Serial | None:
        """Return the entry of a serial number, or None."""
        if self._file is not None:
            self._refresh(self._file)
        return self._known.get(serial)

    def _refresh(self, file: WatchedFile) -> None:
        try:
            text = file.news()
            if text is not None:
                self._known = parse(text)
        except ConfigError as error:
            log.warning("serial numbers stay as they were", extra={"reason": str(error)})


def parse(text: str) -> dict[str, Serial]:
    """Return the serial numbers of a file's text.

    Raises:
        ConfigError: A line is wrong; names it.
    """
    known = {}
    for number, line in enumerate(text.splitlines(), 1):
        serial, *rest = line.split() or [""]
        if not serial or serial.startswith("#"):
            continue
        known[serial] = _entry(serial, rest, number)
    return known


def _entry(serial: str, rest: list[str], number: int) -> Serial:
    wrong = ConfigError(f"FLEET_SERIALS_FILE, line {number}: must be SERIAL KEY [MAC], the key 64 hexadecimal digits")
    mac = canonical_mac(rest[1]) if len(rest) == 2 else ""
    if not _SERIAL.fullmatch(serial) or len(rest) not in (1, 2) or mac is None:
        raise wrong
    try:
        key = bytes.fromhex(rest[0])
    except ValueError:
        raise wrong from None
    if len(key) != 32:
        raise wrong
    return Serial(key, mac)
