"""HTTP connections with limits in time and number.

uvicorn limits the idle time between requests, but not the time of a request's head, of a body after its answer or of an
unread answer, nor the number of connections.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(slots=True)
class Bounds:
    """Limits of one server's connections; times in seconds."""

    head: float = 10.0
    """From the connection, or the end of an answer, to the end of the next request's head."""
    unread: float = 30.0
    """Longest time in which a client reads nothing of its answer; equals firmware's limit for a download."""
    connections: int = 4096
    each: int = 1024
    """Connections of one address: half of a large site that boots at once."""
    here: Counter[str] = field(default_factory=Counter)
    """Connections by address."""
    counts: Counter[str] = field(default_factory=Counter)
    """Connections that were ended, by reason."""


class BoundedConnection(H11Protocol):
    """A connection within `bounds`, which a subclass for each server holds."""

    bounds: Bounds
    _deadline: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _peer = ""

    @classmethod
    def within(cls, bounds: Bounds) -> type["BoundedConnection"]:
        return type(cls.__name__, (cls,), {"bounds": bounds})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent
        super().connection_made(transport)
        self._peer = self.client[0] if self.client else ""
        self.bounds.here[self._peer] += 1
        if len(self.connections) > self.bounds.connections or self.bounds.here[self._peer] > self.bounds.each:
            self._end("too many connections")
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._deadline, self._stuck):
            if timer is not None:
                timer.cancel()
        self.bounds.here[self._peer] -= 1
        if not self.bounds.here[self._peer]:
            del self.bounds.here[self._peer]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        self.bounds.counts["malformed request"] += 1
        super().send_400_response(msg)

    def on_response_complete(self) -> None:
        # Before the parent's call, which may begin the next request at once.
        self._await_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.bounds.unread, self._end, "answer not read")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def _await_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.bounds.head, self._look)

    def _look(self) -> None:
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr] # None before the first
            self._end("no request")

    def _end(self, reason: str) -> None:
        self.bounds.counts[reason] += 1
        self.transport.abort()
