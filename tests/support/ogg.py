"""Ogg files with Opus in them (RFC 3533, RFC 7845), written without a library."""

import struct
from collections.abc import Sequence

_LACING = 255
_PER_PAGE = 8
_POLYNOMIAL = 0x04C11DB7


def write_opus(packets: Sequence[bytes], *, channels: int = 1, frame_ms: int = 60) -> bytes:
    """Return a file of one stream with these packets."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, channels, 0, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 4) + b"test" + struct.pack("<I", 0)
    pages = [([head], 0), ([tags], 0)]
    for at in range(0, len(packets), _PER_PAGE):
        some = list(packets[at : at + _PER_PAGE])
        pages.append((some, (at + len(some)) * frame_ms * 48))
    last = len(pages) - 1
    return b"".join(
        _page(some, granule, number, (2 if number == 0 else 0) | (4 if number == last else 0))
        for number, (some, granule) in enumerate(pages)
    )


def _page(packets: Sequence[bytes], granule: int, number: int, flags: int) -> bytes:
    table = b"".join(bytes([_LACING] * (len(one) // _LACING) + [len(one) % _LACING]) for one in packets)
    head = struct.pack("<4sBBqIII", b"OggS", 0, flags, granule, 7, number, 0) + bytes([len(table)])
    page = head + table + b"".join(packets)
    return page[:22] + struct.pack("<I", checksum(page)) + page[26:]


def checksum(page: bytes) -> int:
    """Return the checksum of a page whose field for it is zero."""
    value = 0
    for byte in page:
        value ^= byte << 24
        for _ in range(8):
            value = ((value << 1) ^ _POLYNOMIAL if value & 0x8000_0000 else value << 1) & 0xFFFF_FFFF
    return value
