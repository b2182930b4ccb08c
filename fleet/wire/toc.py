"""The first bytes of an Opus packet (RFC 6716, section 3): its duration, and whether it is valid.

The datagram carries no authentication tag, so a valid duration is the best sign that a packet was encrypted under the
session's key.
"""

SHORTEST_AUDIO = 4
"""Shorter payloads always mean silence (discontinuous transmission)."""

FRAME_MS = (5, 10, 20, 40, 60, 80, 100, 120)
"""Lengths of packets that a session may have."""
SAMPLE_RATES = (8000, 12000, 16000, 24000, 48000)
"""In hertz."""

_LONGEST_MS = 120.0
_LONGEST_FRAME = 1275
_SILK_MS = (10.0, 20.0, 40.0, 60.0)
_HYBRID_MS = (10.0, 20.0)
_CELT_MS = (2.5, 5.0, 10.0, 20.0)
_FRAME_MS = _SILK_MS * 3 + _HYBRID_MS * 2 + _CELT_MS * 4
_EMPTY = {
    5: b"\xe8",
    10: b"\x40",
    20: b"\x48",
    40: b"\x50",
    60: b"\x58",
    80: b"\x53\x02",
    100: b"\x4b\x05",
    120: b"\x5b\x02",
}


def duration_ms(packet: bytes) -> float | None:
    """Return how many milliseconds a packet lasts (2.5 to 120), or None if it is not an Opus packet."""
    if not packet:
        return None
    first = packet[0]
    if not first & 3:
        # One frame: the form that devices send.
        return _FRAME_MS[first >> 3] if len(packet) <= 1 + _LONGEST_FRAME else None
    total = _FRAME_MS[first >> 3] * _count(packet)
    return total if 0 < total <= _LONGEST_MS else None


def empty_packet(frame_ms: int) -> bytes:
    """Return a packet without content that lasts `frame_ms`: a decoder lets the sound before it fade out.

    Args:
        frame_ms: One of 5, 10, 20, 40, 60, 80, 100, 120.
    """
    return _EMPTY[frame_ms]


def _count(packet: bytes) -> int:
    """Return the number of frames of a packet with codes 1 to 3, 0 if it is invalid."""
    code = packet[0] & 3
    if code == 1:
        return 2 if len(packet) % 2 and len(packet) // 2 <= _LONGEST_FRAME else 0
    if code == 2:
        return 2 if _first_length_fits(packet) else 0
    return packet[1] & 0x3F if len(packet) > 1 else 0


def _first_length_fits(packet: bytes) -> bool:
    if len(packet) < 2:
        return False
    if packet[1] < 252:
        return packet[1] <= len(packet) - 2
    return len(packet) > 2 and packet[1] + 4 * packet[2] <= len(packet) - 3
