"""Firmware versions and images in the device's form (contract 1.2 and 1.5)."""

import re

Version = tuple[int, ...]
"""The numbers between the dots. A device upgrades to a greater version; (2, 4, 0) is greater than (2, 4)."""

HEAD_BYTES = 80
"""Bytes at an image's beginning that contain its version."""

_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,7}", re.ASCII)
_BOARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_IMAGE_MAGIC, _DESCRIPTION_MAGIC = b"\xe9", b"\x32\x54\xcd\xab"
_DESCRIPTION = 32
"""Offset of the application's description: behind the headers of the image and of its first segment."""
_VERSION_AT, _VERSION_BYTES = 48, 32


def parse_version(text: str) -> Version | None:
    """Return a version, or None if firmware cannot read it: firmware aborts on a part that is not a 32-bit number."""
    return tuple(int(part) for part in text.split(".")) if _VERSION.fullmatch(text) else None


def is_board(text: str) -> bool:
    """Whether a text can be the name of a board, and of a folder."""
    return _BOARD.fullmatch(text) is not None


def image_version(head: bytes) -> str | None:
    """Return the version that an ESP32 application will report, or None if this is not such an image.

    Args:
        head: The image's first `HEAD_BYTES` bytes.
    """
    described = head[_DESCRIPTION : _DESCRIPTION + len(_DESCRIPTION_MAGIC)] == _DESCRIPTION_MAGIC
    if len(head) < HEAD_BYTES or not head.startswith(_IMAGE_MAGIC) or not described:
        return None
    field = head[_VERSION_AT : _VERSION_AT + _VERSION_BYTES].partition(b"\0")[0]
    return field.decode("ascii", "replace")
