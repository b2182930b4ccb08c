"""`notify`: an idle device plays a file and shows its subtitles (firmware 2.5, docs/notify.md at 77500b8).

There is no answer to it. Firmware before 2.5 ignores it, and so does a device that is not idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.wire.firmware import parse_version
from fleet.wire.json_text import dump

FIRST = (2, 5)
"""The first version of firmware that knows it."""
LARGEST = 6_000
"""Bytes of a message that a board without PSRAM still takes (contract 10)."""

_LONGEST_START = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Subtitle:
    """A text that is shown from a moment of the audio on."""

    start_ms: int
    text: str


def is_known(firmware: str) -> bool:
    """Whether firmware of this version knows the message; one that says no version does not."""
    version = parse_version(firmware)
    return version is not None and version >= FIRST


def is_playable(url: str) -> bool:
    """Whether firmware fetches from this address."""
    return url.startswith(("http://", "https://")) and url.isascii() and url.isprintable() and " " not in url


def read_subtitle(text: str) -> Subtitle | None:
    """Return a subtitle that is written as `1800:The result is saved`, or None when it is none."""
    start, colon, words = text.partition(":")
    if not colon or not start.isascii() or not start.isdecimal() or int(start) > _LONGEST_START:
        return None
    return Subtitle(int(start), words)


def write(url: str, subtitles: Sequence[Subtitle] = ()) -> bytes | None:
    """Return the message, or None when it is too long for a device."""
    entries = [{"start_ms": one.start_ms, "text": one.text} for one in subtitles]
    message = {"type": "notify", "audio_url": url, **({"subtitles": entries} if entries else {})}
    written = dump(message)
    return written if len(written) <= LARGEST else None
