"""The message `notify`: an idle device plays a file and shows subtitles (firmware 2.5, docs/notify.md at 77500b8).

The device does not answer. Firmware before 2.5 ignores the message; a device that is not idle ignores it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet.wire.firmware import parse_version
from fleet.wire.json_text import dump

FIRST = (2, 5)
"""The first firmware version with this message."""
LARGEST = 6_000
"""Bytes of a message that a board without PSRAM can receive (contract 10)."""

_LONGEST_START = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Subtitle:
    """A text, and the time in the audio at which the device shows it."""

    start_ms: int
    text: str


def is_known(firmware: str) -> bool:
    """Whether firmware of this version has the message; False if the version is unknown."""
    version = parse_version(firmware)
    return version is not None and version >= FIRST


def is_playable(url: str) -> bool:
    """Whether firmware can fetch from this URL."""
    return url.startswith(("http://", "https://")) and url.isascii() and url.isprintable() and " " not in url


def read_subtitle(text: str) -> Subtitle | None:
    """Return the subtitle in a text such as `1800:The result is saved`, or None if the text has another form."""
    start, colon, words = text.partition(":")
    if not colon or not start.isascii() or not start.isdecimal() or int(start) > _LONGEST_START:
        return None
    return Subtitle(int(start), words)


def message(url: str, subtitles: Sequence[Subtitle]) -> dict[str, Any]:
    """Return the message."""
    entries = [{"start_ms": one.start_ms, "text": one.text} for one in subtitles]
    return {"type": "notify", "audio_url": url, **({"subtitles": entries} if entries else {})}


def write(url: str, subtitles: Sequence[Subtitle] = ()) -> bytes | None:
    """Return the message as text, or None if it is longer than `LARGEST`."""
    written = dump(message(url, subtitles))
    return written if len(written) <= LARGEST else None
