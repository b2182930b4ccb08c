"""What the front bounds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """Bounds of a front; times in seconds, sizes in bytes. Each connection takes two file descriptors."""

    connections: int = 10_000
    """Device connections; one more is closed at once."""
    strangers: int = 1_000
    """Connections that have not proved who they are; for one more the oldest is closed."""
    greeting: float = 5.0
    """From the TCP connection to a whole CONNECT."""
    upstream: float = 9.0
    """To connect to the broker and to subscribe there; firmware waits 10 s for its CONNACK."""
    stuck: float = 10.0
    """How long either side may read nothing of what waits for it."""
    backlog: int = 256 * 1024
    """How much may wait for a device that does not read."""
    devices: int | None = None
    """Different devices that are let in as long as the broker runs, for a broker that keeps something of each for ever;
    one that was here before comes in again. None for any number."""
    messages: int = 50
    """What one device may send a second for long, ten times as much at once; a message counts once for each 4 KiB.

    Stock firmware sends a few; one that floods would fill the queue in which all devices of its shard wait.
    """
