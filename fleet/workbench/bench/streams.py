"""What the processes of a benchmark agree on without talking: the streams' names and keys, and their rate."""

HOST = "127.0.0.1"
FRAME_MS = 60
PACKETS_A_SECOND = 1000 / FRAME_MS
"""Of one stream in one direction."""

_FIRST_SSRC = 0x10000000


def ssrc(number: int) -> int:
    """Return the ssrc of the n-th stream."""
    return _FIRST_SSRC + number


def key(number: int) -> bytes:
    """Return the audio key of the n-th stream."""
    return b"benchmark key" + number.to_bytes(3, "big")


def device(number: int) -> str:
    """Return the MAC of the n-th stream's device."""
    return "02:00:00:" + ":".join(f"{part:02x}" for part in number.to_bytes(3, "big"))


def session(number: int) -> str:
    return f"bench-{number}"
