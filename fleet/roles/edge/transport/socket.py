"""The UDP socket of an edge, and the tick that reads it and runs the timer wheel.

A wake-up of the event loop costs more than a packet. So the loop watches the socket only while it is idle. From the
first packet on, a tick every 10 ms reads all packets and runs the timer wheel, until no packet came for a while and no
timer is set.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterable
from contextvars import Context
from typing import Protocol

from fleet.roles.edge.transport.datagrams import Address as Address
from fleet.roles.edge.transport.datagrams import Batch, NativeChannel, PlainChannel, PlainDatagrams, open_datagrams
from fleet.roles.edge.transport.stall_detector import StallDetector
from fleet.roles.edge.transport.timer_wheel import TICK, TimerWheel, tick_of

log = logging.getLogger(__name__)

IDLE_TICKS = 20
"""Ticks without packets and timers after which the loop watches the socket again."""
RECEIVE_BUFFER = 4 * 1024 * 1024
SEND_BUFFER = 1024 * 1024
"""A tick of 3,000 streams sends 500 packets at once; Linux counts about 800 bytes for each until it has left."""


class DatagramReceiver(Protocol):
    """Receives the datagrams of a socket."""

    def take(self, batches: Iterable[Batch], now: float) -> None:
        """Take what came, in batches: datagrams and their senders, and packets that the native part has admitted.

        After an exception the rest comes with the next call.
        """


class AudioSocket:
    """One non-blocking UDP socket.

    Args:
        receiver: Takes every datagram.
        counters: Count received packets, and failures to receive or send.
        stalls: Gets a beat at the beginning of each tick.
        native: Whether to use the native part, if it is installed.
    """

    def __init__(
        self, receiver: DatagramReceiver, counters: Counter[str], stalls: StallDetector, *, native: bool
    ) -> None:
        self._receiver = receiver
        self._stalls = stalls
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams = open_datagrams(self._socket, counters, native=native)
        """Timers of the wheel may send here: the tick itself sends what waits."""
        self._ticking = False
        self._context = Context()
        self._handle: asyncio.Handle | None = None
        self._idle = 0
        self.bound = False
        self.wheel = TimerWheel(self._loop.time, self._wake)

    def bind(self, host: str, port: int) -> None:
        """Listen for packets.

        Raises:
            OSError: The address is in use or does not belong to this machine.
        """
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        try:
            self._socket.bind((host, port))
        except OSError:
            self.close()
            raise
        self.bound = True
        log.info("audio socket bound", extra={"port": self.port, "native": self.native})
        self._loop.add_reader(self._socket, self._wake)

    @property
    def native(self) -> bool:
        """Whether the native part reads and writes."""
        return not isinstance(self.datagrams, PlainDatagrams)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def _is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def channel(self, key: bytes, ssrc: int, frame_ms: int) -> PlainChannel | NativeChannel:
        """Return the channel of a session, whose packets for the device have this length; for timers of the wheel."""
        return self.datagrams.channel(key, ssrc, frame_ms)

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram; count and drop it if the kernel does not take it."""
        self.datagrams.send(datagram, address)
        if not self._ticking:
            self.datagrams.flush()

    def close(self) -> None:
        if self._handle:
            self._handle.cancel()
        self._loop.remove_reader(self._socket)
        self.datagrams.close()
        self._socket.close()

    def _wake(self) -> None:
        if self._handle is None and self._is_open:
            self._idle = 0
            self.wheel.expected = self._loop.time()
            self._loop.remove_reader(self._socket)
            # Run in an empty context. Otherwise all later log lines would carry the fields of the session that woke
            # the loop.
            self._handle = self._loop.call_soon(self._tick, context=self._context)

    def _tick(self) -> None:
        now = self._loop.time()
        self._stalls.beat(now)
        self._ticking = True
        try:
            # Fire the timers first: a late downlink packet is audible, a late uplink packet is not.
            self.wheel.run(now)
            self.datagrams.flush()
            before = self._counters["received"]
            self._receiver.take(self.datagrams.read(now), now)
            self.datagrams.flush()
            received = self._counters["received"] != before
            self._idle = 0 if received or self.wheel.pending else self._idle + 1
        finally:
            self._ticking = False
            self._schedule(now)

    def _schedule(self, now: float) -> None:
        self._handle = None
        if not self._is_open:
            return
        if self._idle < IDLE_TICKS:
            # Ticks lie on a fixed grid like the wheel's times, so that delays do not add up. After a late tick the next
            # comes at least half a tick later: otherwise a device would get the packets of both ticks together.
            self.wheel.expected = due = max((tick_of(now) + 1) * TICK, now + TICK / 2)
            self._handle = self._loop.call_at(due, self._tick, context=self._context)
        else:
            self._loop.add_reader(self._socket, self._wake)
