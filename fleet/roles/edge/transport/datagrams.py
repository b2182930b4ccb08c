"""Read and write a socket's datagrams: one by one in Python, or in batches by the native part (docs/adr/0029).

The native part decrypts too. It decides only about the usual packet: the next one of a stream, from the device's
address, with its first byte (`UplinkStream.expected`). All other packets come to Python as they were received.
"""

import socket
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol

from fleet.wire.packet import Channel, PacketCipher

Address = tuple[str, int]
Expected = tuple[Address, int, int, float, float, float]
"""Address, first byte and last number of a stream; when its last two packets came; seconds for which that counts."""

LARGEST_DRAIN = 1024
"""Packets taken a tick: an unbounded drain starves the loop above 100,000 packets a second."""
_NATIVE_DRAIN = 256
"""Packets that one native call takes, in about half a millisecond."""
_LARGEST_DATAGRAM = 2048


class DatagramReceiver(Protocol):
    """Receives the datagrams of a socket."""

    def receive(self, datagram: bytes, address: Address, now: float) -> None:
        """Take one datagram and its sender."""

    def receive_usual(self, ssrc: int, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one decrypted packet, which is the one that its stream expects."""


class NativeChannel(PacketCipher, Protocol):
    """A session's cipher in the native part, which also knows the session's next packet."""

    def expect(
        self, address: Address, first: int, newest: int, last: float, last_but_one: float, live: float, /
    ) -> None:
        """Pass on the next packet decrypted, if it is like this."""

    def stop(self) -> None:
        """Expect nothing."""

    def close(self) -> None:
        """End the session."""


class Datagrams(Protocol):
    """The datagrams of one socket."""

    def channel(self, key: bytes, ssrc: int) -> Channel | NativeChannel:
        """Return the cipher of a session."""

    def receive(self, now: float) -> int:
        """Take at most `LARGEST_DRAIN` datagrams; return how many came."""

    def send(self, datagram: bytes, address: Address) -> None:
        """Send one datagram, at the latest with `flush`; count and drop it if the kernel does not take it."""

    def flush(self) -> None:
        """Send what waits."""

    def close(self) -> None:
        """Forget the socket."""


class PlainDatagrams:
    """In Python.

    Args:
        opened: Non-blocking.
        receiver: Takes every datagram.
        counters: Count failures.
    """

    def __init__(self, opened: socket.socket, receiver: DatagramReceiver, counters: Counter[str]) -> None:
        self._receive, self._sendto = opened.recvfrom_into, opened.sendto
        self._receiver = receiver
        self._counters = counters
        # One buffer for all packets: to allocate 2 KB for each costs more than to copy a small packet.
        self._buffer = memoryview(bytearray(_LARGEST_DATAGRAM))

    def channel(self, key: bytes, ssrc: int) -> Channel:
        return Channel(key, ssrc)

    def receive(self, now: float) -> int:
        receive, take, buffer = self._receive, self._receiver.receive, self._buffer
        for received in range(LARGEST_DRAIN):
            try:
                size, address = receive(buffer)
            except BlockingIOError:
                return received
            except OSError:
                # An ICMP error of an earlier send; no packet was read.
                self._counters["receive_failed"] += 1
                continue
            if address[1]:
                take(bytes(buffer[:size]), address, now)
            else:
                self._counters["port_zero"] += 1
        return LARGEST_DRAIN

    def send(self, datagram: bytes, address: Address) -> None:
        try:
            self._sendto(datagram, address)
        except BlockingIOError:
            self._counters["send_full"] += 1
        except OSError:
            self._counters["send_failed"] += 1

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is held."""


class NativeDatagrams:
    """In batches, by the module `fleet_native`.

    Args:
        opened: Non-blocking.
        receiver: Takes every datagram.
        counters: Count failures.

    Raises:
        ImportError: The module is not installed.
    """

    def __init__(self, opened: socket.socket, receiver: DatagramReceiver, counters: Counter[str]) -> None:
        self._plane = import_module("fleet_native").Plane(opened.fileno())
        self._receiver = receiver
        self._counters = counters
        self._items: Iterator[Any] = iter(())
        self.channel = self._plane.channel
        self.send = self._plane.send
        self.close = self._plane.close

    def receive(self, now: float) -> int:
        receiver, received, count = self._receiver, 0, _NATIVE_DRAIN
        while True:
            # First what is left over from a tick in which a packet led to an exception.
            for item in self._items:
                if len(item) == 4:
                    ssrc, sequence, timestamp, payload = item
                    receiver.receive_usual(ssrc, sequence, timestamp, payload, now)
                else:
                    datagram, address = item
                    receiver.receive(datagram, address, now)
            if count < _NATIVE_DRAIN or received >= LARGEST_DRAIN:
                return received
            items = self._plane.receive(now, _NATIVE_DRAIN)
            self._items, count = iter(items), len(items)
            received += count + self._count()

    def flush(self) -> None:
        self._plane.flush()
        self._count()

    def _count(self) -> int:
        """Count failures; return how many of them were datagrams that came."""
        counts = self._plane.counts()
        if counts is None:
            return 0
        self._counters.update(+Counter(counts))
        return int(counts["port_zero"] + counts["receive_failed"])


def open_datagrams(
    opened: socket.socket, receiver: DatagramReceiver, counters: Counter[str], *, native: bool
) -> Datagrams:
    """Return the native form if it is wanted and installed, else the one in Python."""
    if native and has_native():
        return NativeDatagrams(opened, receiver, counters)
    return PlainDatagrams(opened, receiver, counters)


def has_native() -> bool:
    """Return whether the native part is installed."""
    try:
        import_module("fleet_native")
    except ImportError:
        return False
    return True
