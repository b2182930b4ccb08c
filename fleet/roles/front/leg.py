"""One TCP connection of the front, without tasks: bytes come by callback, and what is written is bounded."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import cast

from fleet.adapters.net.mqtt.tcp import acknowledge


class Leg(asyncio.Protocol):
    """A TCP connection to a device or to the broker.

    Args:
        receive: Called with whatever arrives.
        lost: Called once, when the connection is gone.
        pressed: Called with True when what was written waits for the other end, with False when it no longer does.
        prompt: Acknowledge at once what arrives; to a device on a radio that would cost packets.
    """

    def __init__(
        self,
        receive: Callable[[bytes], None],
        lost: Callable[[], None],
        pressed: Callable[[bool], None] = lambda _: None,
        *,
        prompt: bool = False,
    ) -> None:
        self._receive = receive
        self._lost = lost
        self._pressed = pressed
        self._prompt = prompt
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._unwanted = False
        self.heard = self._loop.time()
        """When the other end last sent something, on the loop's clock."""
        self.stuck: float | None = None
        """Since when something has been waiting for the other end; None while nothing does."""
        self.gone = asyncio.Event()
        """Set when the connection is over."""

    @property
    def address(self) -> str:
        """The other end's IP address, empty when there is none."""
        peer = self._transport.get_extra_info("peername") if self._transport else None
        return str(peer[0]) if peer else ""

    @property
    def backlog(self) -> int:
        """Bytes written that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes) -> None:
        if data and self._transport and not self._transport.is_closing():
            self._transport.write(data)

    def hold(self, still: bool) -> None:
        """Read no more for now, or again."""
        if self._transport is None or self._transport.is_closing():
            return
        if still:
            self._transport.pause_reading()
        else:
            self.heard = self._loop.time()
            self._transport.resume_reading()

    def close(self) -> None:
        """Close in order, or at once when the other end does not even take what was written."""
        if self._transport and self.backlog == 0:
            self._transport.close()
        else:
            self.cut()

    async def wait_closed(self, seconds: float) -> None:
        """Wait until the other end closes, then close, at the latest after `seconds`."""
        if self._transport is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.gone.wait()
        self.cut()

    def cut(self) -> None:
        """Close at once; a connection that is only being made is closed when it is."""
        self._unwanted = True
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)
        if self._unwanted:
            transport.abort()
            return
        # So that a waiting packet counts as stuck. With TLS a limit of 0 is reached when nothing waits.
        transport.set_write_buffer_limits(high=1, low=0)
        self._socket = transport.get_extra_info("socket")
        if self._socket is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        if self._prompt and self._socket is not None:
            acknowledge(self._socket)
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stuck = None
        self.gone.set()
        self._lost()

    def pause_writing(self) -> None:
        self.stuck = self._loop.time()
        self._pressed(True)

    def resume_writing(self) -> None:
        self.stuck = None
        self._pressed(False)
