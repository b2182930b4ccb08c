"""One TCP connection of the front: it calls back with received bytes, needs no task, and reports its backlog."""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from fleet.adapters.net.mqtt.tcp import acknowledge


class Leg(asyncio.Protocol):
    """A TCP connection to a device or to the broker.

    All packets of one read are given to `receive` together, and their answers are one `write`, which is one system
    call.

    Args:
        receive: Called with received bytes.
        lost: Called once, when the connection is closed.
        on_backpressure: Called with True when written bytes begin to wait for the peer, with False when none wait.
        quick_ack: Send TCP acknowledgements at once; on a radio link that would cost packets.
    """

    def __init__(
        self,
        receive: Callable[[bytes], None],
        lost: Callable[[], None],
        on_backpressure: Callable[[bool], None] = lambda _: None,
        *,
        quick_ack: bool = False,
    ) -> None:
        self._receive = receive
        self._lost = lost
        self._on_backpressure = on_backpressure
        self._quick_ack = quick_ack
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._descriptor: int | None = None
        self._aborted = self._closed = False
        self._waiter: asyncio.Future[None] | None = None
        self.received_at = self._loop.time()
        """When the peer last sent bytes, on the loop's clock."""
        self.blocked_since: float | None = None
        """When written bytes began to wait for the peer, on the loop's clock; None while none wait."""

    @property
    def address(self) -> str:
        """The peer's IP address, empty if there is none."""
        peer = self._transport.get_extra_info("peername") if self._transport else None
        return str(peer[0]) if peer else ""

    @property
    def backlog(self) -> int:
        """Bytes written that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes | bytearray) -> None:
        """Write bytes, which do not change any more."""
        if data and self._transport and not self._transport.is_closing():
            self._transport.write(data)

    def pause_reading(self, paused: bool) -> None:
        """Pause or resume reading."""
        if self._transport is None or self._transport.is_closing():
            return
        if paused:
            self._transport.pause_reading()
        else:
            self.received_at = self._loop.time()
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection; abort it if written bytes still wait for the peer."""
        if self._transport and self.backlog == 0:
            # With TLS, Python 3.11.2's transport cannot be aborted any more once it was closed twice.
            if not self._transport.is_closing():
                self._transport.close()
        else:
            self.abort()

    async def wait_closed(self, seconds: float) -> None:
        """Wait at most `seconds` until the peer closes, then close."""
        if self._transport is not None and not self._closed:
            self._waiter = self._loop.create_future()
            await asyncio.wait((self._waiter,), timeout=seconds)
        self.abort()

    def abort(self) -> None:
        """Close at once; a connection that is still being made is closed when it is made."""
        self._aborted = True
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        if self._aborted:
            transport.abort()
            return
        # So that `pause_writing` is called when one packet waits. With TLS a limit of 0 is reached when none waits.
        transport.set_write_buffer_limits(high=1, low=0)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            # asyncio and uvloop have set TCP_NODELAY.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._descriptor = connection.fileno() if self._quick_ack else None

    def data_received(self, data: bytes) -> None:
        self.received_at = self._loop.time()
        if self._descriptor is not None:
            acknowledge(self._descriptor)
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.blocked_since = None
        self._closed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._lost()

    def pause_writing(self) -> None:
        self.blocked_since = self._loop.time()
        self._on_backpressure(True)

    def resume_writing(self) -> None:
        self.blocked_since = None
        self._on_backpressure(False)
