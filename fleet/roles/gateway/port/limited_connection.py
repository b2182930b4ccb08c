"""WebSocket connections with limits on idle time and memory.

The library bounds the size of messages and the time of the opening handshake. It does not bound the time of a message,
the number of pings, or the pongs for a client that never reads. It also processes all received data at once, which may
be forty thousand frames.
"""

import asyncio
from collections.abc import Callable

from websockets.asyncio.server import ServerConnection
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Event, Protocol, State

from fleet.adapters.files.operator_tokens import Operator
from fleet.adapters.redis.access.voice_tickets import VoiceTicket
from fleet.core.rates import Buckets
from fleet.roles.gateway.port.connection_limits import ConnectionLimits
from fleet.wire.websocket_frames import FrameTracker

_PIECE = 4096
"""Bytes that are processed between two checks whether reading must pause."""
_HEAD_END = b"\r\n\r\n"
_FAULTS: dict[int, str] = {
    CloseCode.PROTOCOL_ERROR: "protocol",
    CloseCode.INVALID_DATA: "protocol",
    CloseCode.MESSAGE_TOO_BIG: "too large",
}
"""Faults of clients for which the library closes their connection, by close code."""
_SILENT = "keepalive ping timeout"


class Deadlines:
    """Time limits of a connection, by reason.

    Args:
        end: Closes the connection; called with the reason.
    """

    def __init__(self, end: Callable[[str], None]) -> None:
        self._end = end
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def set(self, reason: str, seconds: float) -> None:
        """Close the connection after `seconds`; a limit that is already set for the reason stays."""
        if reason not in self._timers:
            self._timers[reason] = asyncio.get_running_loop().call_later(seconds, self._end, reason)

    def drop(self, *reasons: str) -> None:
        """Remove these limits; without arguments all."""
        for reason in reasons or tuple(self._timers):
            if timer := self._timers.pop(reason, None):
                timer.cancel()


class LimitedConnection(ServerConnection):
    """A connection within the limits of `connection_limits`; each gateway has a subclass with its own."""

    connection_limits: ConnectionLimits
    operator: Operator | None = None
    """The owner of its token."""
    ticket: VoiceTicket | None = None
    """Of a voice client."""

    @classmethod
    def of(cls, connection_limits: ConnectionLimits) -> type["LimitedConnection"]:
        return type(cls.__name__, (cls,), {"connection_limits": connection_limits})

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._head: bytearray | None = bytearray()
        self._held = bytearray()
        self._full = self._ended = False
        self._edges, self._messages = FrameTracker(), 0
        self._controls = Buckets(self.connection_limits.limits.controls, most=1)
        self._deadlines = Deadlines(self.end)
        super().connection_made(transport)
        self.recv_messages.pause, self.recv_messages.resume = self._fill, self._empty
        place = self.remote_address
        self.address = str(place[0]) if isinstance(place, tuple) and place else ""
        """The client's address; until the request was read, that of its proxy."""
        self._deadlines.set("no request", self.connection_limits.limits.head)
        self.connection_limits.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadlines.drop()
        self._held.clear()
        self.connection_limits.leave(self)
        if not self._ended and (reason := _failure(self.protocol)):
            self.connection_limits.counts[reason] += 1
        self._ended = True
        super().connection_lost(exc)

    def become_client(self) -> None:
        """Count the connection as a client from now on."""
        self._deadlines.drop("not closed")
        self.connection_limits.leave(self)

    def end(self, reason: str) -> None:
        """Close the connection at once."""
        if not self._ended:
            self._ended = True
            self.connection_limits.counts[reason] += 1
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._held += data
        self._feed()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadlines.set("not read", self.connection_limits.limits.unread)
        self.transport.pause_reading()  # else each further ping would add a pong to the full buffer

    def resume_writing(self) -> None:
        super().resume_writing()
        self._deadlines.drop("not read")
        self.loop.call_soon(self._feed)

    def process_event(self, event: Event) -> None:
        controls = isinstance(event, Frame) and event.opcode in (Opcode.PING, Opcode.PONG)
        if controls and self._controls.take("", self.loop.time()):
            self.end("too many pings")
        super().process_event(event)

    @property
    def _waits(self) -> bool:
        """Whether reading must pause."""
        return self._full or self.paused

    def _fill(self) -> None:
        self._full = True
        self.transport.pause_reading()

    def _empty(self) -> None:
        self._full = False
        self.loop.call_soon(self._feed)

    def _feed(self) -> None:
        while self._held and not (self._waits or self._ended or self.protocol.reader.eof):
            piece = bytes(self._held[:_PIECE])
            del self._held[:_PIECE]
            self._follow(piece)
            if not self._ended:
                super().data_received(piece)
        if self._ended:
            return
        if not self._waits:
            self.transport.resume_reading()
        if self._head is None and self.state is not State.OPEN:
            self._deadlines.set("not closed", self.connection_limits.limits.goodbye)
            self.connection_limits.enter(self)
        self._watch()

    def _follow(self, piece: bytes) -> None:
        """Collect the request's head until it is complete; after it, track the frames."""
        if self._head is None:
            self._edges.feed(piece)
            return
        searched = max(0, len(self._head) - len(_HEAD_END))
        self._head += piece
        end = self._head.find(_HEAD_END, searched)
        if end >= 0:
            rest, self._head = bytes(self._head[end + len(_HEAD_END) :]), None
            self._edges.feed(rest)
            self._deadlines.drop("no request")
            self._deadlines.set("not closed", self.connection_limits.limits.head)
        elif len(self._head) > self.connection_limits.limits.head_bytes:
            self.end("head too large")

    def _watch(self) -> None:
        """Limit the time of an unfinished message, except while the gateway itself does not read."""
        # If a reader waits for the message, it takes a fragment that fills the queue at once. Then the client is slow.
        ours = self.paused or (self._full and not self.recv_messages.get_in_progress)
        if self._edges.between or ours or self._edges.messages != self._messages:
            self._deadlines.drop("message too slow")
        self._messages = self._edges.messages
        if not self._edges.between and not ours:
            self._deadlines.set("message too slow", self.connection_limits.limits.message)


def _failure(protocol: Protocol) -> str | None:
    """Return the client's fault for which the connection was closed; None if there was none."""
    wrong = protocol.handshake_exc
    if wrong is not None:
        # A client that only tested the port and sent nothing made no fault.
        return None if isinstance(wrong.__cause__, EOFError) else "malformed request"
    sent = protocol.close_sent
    if sent is None or protocol.close_rcvd_then_sent:
        return None
    return "silent" if sent.reason == _SILENT else _FAULTS.get(sent.code)
