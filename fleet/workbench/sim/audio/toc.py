"""The first byte of an Opus packet: how long the packet lasts and how many channels it has (RFC 6716, section 3.1)."""

_SILK_MS = (10.0, 20.0, 40.0, 60.0)
_HYBRID_MS = (10.0, 20.0)
_CELT_MS = (2.5, 5.0, 10.0, 20.0)
_FIRST_HYBRID = 12
_FIRST_CELT = 16
_COUNTED = 3


def duration_ms(packet: bytes) -> float:
    """Return how many milliseconds a packet lasts; 0 for one that cannot be Opus."""
    if not packet:
        return 0.0
    config, code = packet[0] >> 3, packet[0] & 3
    if config < _FIRST_HYBRID:
        frame = _SILK_MS[config & 3]
    elif config < _FIRST_CELT:
        frame = _HYBRID_MS[config & 1]
    else:
        frame = _CELT_MS[config & 3]
    if code < _COUNTED:
        return frame * (1 if code == 0 else 2)
    return frame * (packet[1] & 0x3F) if len(packet) > 1 else 0.0


def is_stereo(packet: bytes) -> bool:
    return bool(packet) and bool(packet[0] & 4)
