"""Writes Opus packets as an Ogg file that firmware 2.5 plays: one mono stream (RFC 3533, RFC 7845)."""

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from fleet.wire.messages import AudioFormat

PER_PAGE: Final = 8
"""Packets of one page, about half a second: the device can play it as soon as it has it."""
_LACING: Final = 255
_FIRST, _LAST = 2, 4
_SERIAL: Final = 0x666C6565
_LOOKAHEAD: Final = 312
"""Samples at 48 kHz that the encoder is late."""
_VENDOR: Final = b"fleet"
_MIRRORED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def write_ogg(packets: Sequence[bytes], audio: AudioFormat) -> bytes:
    """Return the file.

    Args:
        packets: At least one.
        audio: Their format. Firmware decodes to the sample rate that the file's head names.
    """
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, _LOOKAHEAD, audio.sample_rate, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", len(_VENDOR)) + _VENDOR + struct.pack("<I", 0)
    pages = [packets[at : at + PER_PAGE] for at in range(0, len(packets), PER_PAGE)]
    written = [_page([head], 0, 0, _FIRST), _page([tags], 0, 1, 0)]
    samples = 0
    for number, page in enumerate(pages, 2):
        samples += len(page) * round(audio.frame_ms * 48)
        written.append(_page(page, samples, number, _LAST if number == len(pages) + 1 else 0))
    return b"".join(written)


def _page(packets: Sequence[bytes], samples: int, number: int, flags: int) -> bytes:
    table = b"".join(bytes([_LACING] * (len(one) // _LACING) + [len(one) % _LACING]) for one in packets)
    head = struct.pack("<4sBBqIII", b"OggS", 0, flags, samples, _SERIAL, number, 0) + bytes([len(table)])
    page = head + table + b"".join(packets)
    return page[:22] + struct.pack("<I", _checksum(page)) + page[26:]


def _checksum(page: bytes) -> int:
    """Return the checksum of Ogg: that of zlib with its bits in the other order, without its inversions."""
    value = zlib.crc32(page.translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2)
