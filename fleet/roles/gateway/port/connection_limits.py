"""Limits of each connection to the gateway, and of connections that are opening or closing."""

from collections import Counter
from dataclasses import dataclass
from typing import Final, Protocol

from fleet.core.fair_places import FairPlaces
from fleet.core.proxies import site
from fleet.core.rates import Rate

SEND_SECONDS: Final = 10.0
"""Longest wait until a client has read so much that a message fits into its buffers; then its connection is closed."""


_CONTROLS: Final = Rate(10, 100)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one connection; times in seconds."""

    tls: float = 5.0
    """For the TLS handshake."""
    head: float = 10.0
    """From the connection to the end of the opening handshake."""
    head_bytes: int = 32 * 1024
    """Of the request's head; browsers send all cookies of a host."""
    message: float = 60.0
    """From the first byte of a message, or of a ping, to its last: 1 MB at 140 kbit/s."""
    unread: float = SEND_SECONDS
    """Longest time in which a client reads nothing although data waits for it."""
    goodbye: float = 5.0
    """From the closing handshake to the end of the TCP connection."""
    controls: Rate = _CONTROLS
    """Pings and pongs of a connection."""
    passing: int = 256
    """Connections that are not clients: opening, closing, or plain HTTP. For one more, the oldest one of the address
    with the most is closed."""


class Passing(Protocol):
    """A connection that may be closed to make room."""

    address: str

    def end(self, reason: str) -> None:
        """Close it at once."""


class ConnectionLimits:
    """All connections of a gateway.

    Args:
        limits: Of each of them.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.counts: Counter[str] = Counter()
        """Numbers of refused and closed connections, by reason."""
        self._passing = FairPlaces[Passing](limits.passing)

    @property
    def passing(self) -> int:
        """Number of connections that are not clients."""
        return len(self._passing)

    def enter(self, connection: Passing) -> None:
        """Add a connection that is not a client yet, or not any more."""
        if connection in self._passing:
            return
        oldest = self._passing.take(connection, site(connection.address))
        if oldest is not None:
            oldest.end("crowded out")

    def leave(self, connection: Passing) -> None:
        """Remove a connection: it has become a client, or has ended."""
        self._passing.leave(connection)
