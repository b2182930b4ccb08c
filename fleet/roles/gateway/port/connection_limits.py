"""The connections of the gateway's port: what each may do, and how many may be on their way in or out."""

from collections import Counter
from dataclasses import dataclass
from typing import Final, Protocol

from fleet.core.fair_places import FairPlaces
from fleet.core.proxies import site
from fleet.core.rates import Rate

SEND_SECONDS: Final = 10.0
"""Longest wait until a client has read enough that a message fits into its buffers; then it is cut off."""


_CONTROLS: Final = Rate(10, 100)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What a connection may do; times in seconds."""

    tls: float = 5.0
    """For the handshake of TLS."""
    head: float = 10.0
    """From the connection to the end of the opening, however the request's head comes in."""
    head_bytes: int = 32 * 1024
    """Browsers send a host all of its cookies."""
    message: float = 60.0
    """From the first byte of a message, or of a ping, to its last: 1 MB at 140 kbit/s."""
    unread: float = SEND_SECONDS
    """How long a client may take nothing of what waits for it."""
    goodbye: float = 5.0
    """From the end of a WebSocket to that of its connection."""
    controls: Rate = _CONTROLS
    """Pings and pongs of a connection."""
    passing: int = 256
    """Connections that are no client: not yet, not any more, or never; for one more, the oldest of the address with the
    most is ended."""


class Passing(Protocol):
    """A connection that may be ended to make room."""

    address: str

    def end(self, reason: str) -> None:
        """End it at once."""


class ConnectionLimits:
    """All connections of a gateway.

    Args:
        limits: Of each of them.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.counts: Counter[str] = Counter()
        """Who was turned away or ended, by reason."""
        self._passing = FairPlaces[Passing](limits.passing)

    @property
    def passing(self) -> int:
        """Connections that are no client."""
        return len(self._passing)

    def enter(self, connection: Passing) -> None:
        """Note a connection that is no client, or is one no more."""
        if connection in self._passing:
            return
        oldest = self._passing.take(connection, site(connection.address))
        if oldest is not None:
            oldest.end("crowded out")

    def leave(self, connection: Passing) -> None:
        """Forget a connection: it has become a client, or is gone."""
        self._passing.leave(connection)
