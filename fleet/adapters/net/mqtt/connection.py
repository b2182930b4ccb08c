"""One TCP or TLS connection to a broker, as packets."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

from fleet.adapters.net.mqtt.tcp import acknowledge
from fleet.ground.errors import Unavailable
from fleet.wire.mqtt.packets import DISCONNECT, PINGREQ, Connack, Publish, Suback
from fleet.wire.mqtt.reader import Broken, BrokerReader, Pingresp, Puback

log = logging.getLogger(__name__)

_SILENT_TICKS = 2
_CLOSE_SECONDS = 1.0


class MqttConnection(asyncio.Protocol):
    """Sends packets, passes on messages, returns the answer to one pending request, and detects the connection's end.

    A PINGREQ is sent every half keep-alive. If nothing arrives for two such ticks in a row, the connection is lost. So
    a half-open connection lasts at most one and a half keep-alives, as on the broker's side (MQTT-3.1.2-24). Ticks are
    counted instead of seconds, because a process that was stopped for a while must not close a working connection.

    Args:
        keepalive: In seconds.
        on_message: Called for every message in order of arrival.
        on_puback: Called with the packet id of every PUBACK.
    """

    def __init__(
        self,
        keepalive: float,
        on_message: Callable[[Publish], None],
        on_puback: Callable[[int], None] = lambda packet_id: None,
    ) -> None:
        self._tick = keepalive / 2
        self._on_message = on_message
        self._on_puback = on_puback
        self._reader = BrokerReader()
        self._request: asyncio.Future[Connack | Suback] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._silent = 0
        self._paused = False
        self._unsent = bytearray()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Set to the reason when the connection has ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._descriptor = connection.fileno()
        self._timer = asyncio.get_running_loop().call_later(self._tick, self._watch)

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        acknowledge(self._descriptor)
        for packet in self._reader.feed(data):
            if isinstance(packet, Publish):
                self._on_message(packet)
            elif isinstance(packet, Puback):
                self._on_puback(packet.packet_id)
            elif isinstance(packet, Broken):
                self._end(f"protocol error: {packet.reason}")
                return
            elif not isinstance(packet, Pingresp) and self._request and not self._request.done():
                self._request.set_result(packet)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) or type(exc).__name__ if exc else "the broker closed the connection")

    async def ask(self, frame: bytes) -> Connack | Suback:
        """Send a packet and return the broker's answer to it; one request at a time.

        Raises:
            Unavailable: The connection ended first.
        """
        self._request = asyncio.get_running_loop().create_future()
        if self.lost.done():
            raise Unavailable(self.lost.result())
        self.send(frame)
        return await self._request

    def send(self, frame: bytes) -> None:
        """Send a packet together with all others of this loop iteration: a system call costs more than the rest."""
        if self._transport and not self._transport.is_closing():
            if not self._unsent:
                self.lost.get_loop().call_soon(self._flush)
            self._unsent += frame

    def unsent(self) -> int:
        """Return how many bytes wait to be sent."""
        return len(self._unsent) + (self._transport.get_write_buffer_size() if self._transport else 0)

    def pause(self, paused: bool) -> None:
        """Stop or resume reading. Silence is not counted while paused."""
        self._paused = paused
        if self._transport and not self._transport.is_closing():
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    async def close(self) -> None:
        """Send DISCONNECT, so that the broker drops the Will, and wait at most a second until the broker closes.

        The broker closes after it has read everything. A session that takes over earlier would receive messages again
        whose acknowledgements are not read yet.
        """
        if self._transport is None:
            return
        if self._paused:
            self.pause(False)
        self.send(DISCONNECT)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.shield(self.lost)
        except TimeoutError:
            log.info("the broker did not close after DISCONNECT")
        finally:
            self._end("closed")

    def _flush(self) -> None:
        frames, self._unsent = self._unsent, bytearray()
        if self._transport and not self._transport.is_closing():
            self._transport.write(frames)

    def _watch(self) -> None:
        if self._silent >= _SILENT_TICKS:
            self._end("the broker does not answer pings")
            return
        self._silent = 0 if self._paused else self._silent + 1
        self.send(PINGREQ)
        self._timer = asyncio.get_running_loop().call_later(self._tick, self._watch)

    def _end(self, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        if self._transport:
            self._transport.abort()
        if not self.lost.done():
            self.lost.set_result(reason)
        if self._request and not self._request.done():
            self._request.set_exception(Unavailable(reason))
