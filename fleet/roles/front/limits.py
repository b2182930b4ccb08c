"""The limits of the front."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """Limits of a front; times in seconds, sizes in bytes. Each connection takes two file descriptors."""

    connections: int = 10_000
    """Device connections; one more is closed at once."""
    unauthenticated: int = 1_000
    """Connections without a valid CONNECT; for one more the oldest is closed."""
    connect: float = 5.0
    """From the TCP connection to a complete CONNECT."""
    upstream: float = 9.0
    """To connect to the broker and to subscribe there; firmware waits 10 s for its CONNACK."""
    stuck: float = 10.0
    """Longest time for which bytes may wait for the device or the broker."""
    backlog: int = 256 * 1024
    """Bytes that may wait for a device."""
    devices: int | None = None
    """Different devices that are admitted while the broker runs, for a broker that keeps memory of each client id.

    A device that was admitted before is admitted again. None for any number.
    """
    messages: int = 50
    """Lasting rate of one device's messages per second; bursts may have ten times as many. A message counts once for
    each 4 KiB.

    Stock firmware sends a few per second. A flood would fill the queue that all devices of its shard share.
    """
