"""The UDP socket of an edge, and the tick that reads it and runs the timer wheel.

A wake-up of the event loop costs more than a packet. So the loop watches the socket only while it is idle. From the
first packet on, a tick every 10 ms reads all packets and runs the timer wheel, until no packet came for a while and no
timer is set.
"""

import asyncio
import socket
from collections import Counter
from contextvars import Context
from typing import Protocol

from fleet.roles.edge.transport.stall_detector import StallDetector
from fleet.roles.edge.transport.timer_wheel import TICK, TimerWheel, tick_of

Address = tuple[str, int]

LARGEST_DRAIN = 1024
"""Packets taken a tick: an unbounded drain starves the loop above 100,000 packets a second."""
IDLE_TICKS = 20
"""Ticks without packets and timers after which the loop watches the socket again."""
RECEIVE_BUFFER = 4 * 1024 * 1024
_LARGEST_DATAGRAM = 2048


class DatagramReceiver(Protocol):
    """Receives the datagrams of a socket."""

    def receive(self, datagram: bytes, address: Address, now: float) -> None:
        """Take one datagram and its sender."""


class AudioSocket:
    """One non-blocking UDP socket.

    Args:
        receiver: Takes every datagram.
        counters: Count received packets, and failures to receive or send.
        stalls: Gets a beat at the beginning of each tick.
    """

    def __init__(self, receiver: DatagramReceiver, counters: Counter[str], stalls: StallDetector) -> None:
        self._receiver = receiver
        self._stalls = stalls
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sendto = self._socket.sendto
        self._context = Context()
        self._handle: asyncio.Handle | None = None
        self._idle = 0
        # One buffer for all packets: to allocate 2 KB for each costs more than to copy a small packet.
        self._buffer = memoryview(bytearray(_LARGEST_DATAGRAM))
        self.bound = False
        self.wheel = TimerWheel(self._loop.time, self._wake)

    def bind(self, host: str, port: int) -> None:
        """Listen for packets.

        Raises:
            OSError: The address is in use or does not belong to this machine.
        """
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        try:
            self._socket.bind((host, port))
        except OSError:
            self.close()
            raise
        self.bound = True
        self._loop.add_reader(self._socket, self._wake)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def _is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram; count and drop it if the kernel does not take it."""
        try:
            self._sendto(datagram, address)
        except BlockingIOError:
            self._counters["send_full"] += 1
        except OSError:
            self._counters["send_failed"] += 1

    def close(self) -> None:
        if self._handle:
            self._handle.cancel()
        self._loop.remove_reader(self._socket)
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
        now, receive, take, buffer = self._loop.time(), self._socket.recvfrom_into, self._receiver.receive, self._buffer
        self._stalls.beat(now)
        received = 0
        try:
            # Fire the timers first: a late downlink packet is audible, a late uplink packet is not.
            self.wheel.run(now)
            while received < LARGEST_DRAIN:
                received += 1
                try:
                    size, address = receive(buffer)
                except BlockingIOError:
                    received -= 1
                    break
                except OSError:
                    # An ICMP error of an earlier send; no packet was read.
                    self._counters["receive_failed"] += 1
                    continue
                if address[1]:
                    take(bytes(buffer[:size]), address, now)
                else:
                    self._counters["port_zero"] += 1
            self._counters["received"] += received
            self._idle = 0 if received or self.wheel.pending else self._idle + 1
        finally:
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
