"""Read and write a socket's datagrams: one by one in Python, or in batches by the native part.

Why there is a native part: docs/adr/0031-native-audio-socket.md.

The native part decrypts too. It admits the usual packet by itself: the next one of a stream, in time, from the device's
address, with its first byte (`UplinkStream.expected`). All other packets come to Python as they were received.
"""

import logging
import socket
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Final, NamedTuple, Protocol

from fleet.roles.edge.transport.packet_pace import Terms
from fleet.wire.packet import Channel

log = logging.getLogger(__name__)

Address = tuple[str, int]


class Expected(NamedTuple):
    """What the next packet of a stream looks like that the native part admits."""

    address: Address
    first: int
    """Its first byte."""
    newest: int
    """The number before its own."""
    last: float
    """When the packet before came."""
    last_but_one: float
    live_seconds: float
    """Time since the last but one in which it may come."""
    pace: Terms
    """Of the stream."""
    allowance: Terms
    """Of the session."""
    highest: int
    """The highest number that may be admitted."""


Progress = tuple[int, float, float, float, float]
"""Of a stream: its newest number, when the last two packets came, `due` of its pace and of the session's allowance."""
Received = tuple[bytes, Address]
"""A datagram and its sender."""
Usual = tuple[int, int, int, bytes]
"""The ssrc, number and timestamp of a packet that was admitted, and its decrypted payload."""

Batch = tuple[Iterator[Usual], Iterator[Received]]
"""What came together. The usual packets of a stream come before its others: after another one the native part admits
nothing of this stream until the session has taken it."""

_NATIVE: Final = "fleet_native"
INTERFACE = 2
"""What the native part must say: it is a distribution of its own, and may be of another version."""
LARGEST_DRAIN = 1024
"""Packets taken a tick: an unbounded drain starves the loop above 100,000 packets a second."""
_NATIVE_DRAIN = 256
"""Packets that one native call takes, in about half a millisecond."""
_LARGEST_DATAGRAM = 2048


class DatagramSender(Protocol):
    """Sends datagrams."""

    def send(self, datagram: bytes, address: Address, /) -> None:
        """Send one datagram, or drop and count it."""


class SessionChannel(Protocol):
    """Opens the packets of one session's device; numbers, seals and sends those for it."""

    @property
    def sent(self) -> int:
        """Number of packets sent."""

    def open(self, datagram: bytes, /) -> bytes:
        """Return the payload of a datagram that `parse` accepted."""

    def move(self, address: Address, /) -> None:
        """Send to this address from now on.

        Raises:
            ValueError: It is no IPv4 address with a port; nothing has changed.
        """

    def send(self, payload: bytes, /) -> bool:
        """Send one Opus packet, at the latest with the next flush; return False if no address is known.

        The packet's number is one more than that of the packet before. Its timestamp is that number of frames, in
        milliseconds. Both are in the nonce, so no two packets share keystream.

        Args:
            payload: At most `LARGEST - HEADER` bytes.
        """


class PlainChannel(Channel):
    """A session's channel in Python.

    Args:
        key: 16 bytes, fresh for every hello.
        ssrc: Of the session.
        frame_ms: Length of the packets that are sent.
        datagrams: Sends them.
    """

    def __init__(self, key: bytes, ssrc: int, frame_ms: int, datagrams: DatagramSender) -> None:
        super().__init__(key, ssrc)
        self._frame_ms = frame_ms
        self._datagrams = datagrams
        self._address: Address | None = None
        self.sent = 0

    def move(self, address: Address, /) -> None:
        self._address = address

    def send(self, payload: bytes, /) -> bool:
        if self._address is None:
            return False
        self.sent += 1
        self._datagrams.send(self.seal(payload, self.sent * self._frame_ms % 2**32, self.sent), self._address)
        return True


class NativeChannel(SessionChannel, Protocol):
    """A session's channel in the native part, which also knows the session's next packet."""

    def expect(self, expected: Expected, /) -> None:
        """Admit the packets that are like this, until another one of this ssrc comes."""

    def progress(self) -> Progress | None:
        """Return how far the packets have come that were admitted since `expect`; None if there was none."""

    def stop(self) -> None:
        """Admit nothing."""

    def close(self) -> None:
        """End the session."""


class Datagrams(Protocol):
    """The datagrams of one socket."""

    def channel(self, key: bytes, ssrc: int, frame_ms: int) -> PlainChannel | NativeChannel:
        """Return the channel of a session, whose packets for the device have this length."""

    def read(self, now: float) -> Iterator[Batch]:
        """Yield batches of together at most about `LARGEST_DRAIN` datagrams, and count them as `received`.

        What is not taken from a batch comes with the next call.
        """

    def send(self, datagram: bytes, address: Address, /) -> None:
        """Send one datagram, at the latest with `flush`; count and drop it if the kernel does not take it."""

    def flush(self) -> None:
        """Send what waits."""

    def close(self) -> None:
        """Forget the socket."""


class PlainDatagrams:
    """In Python.

    Args:
        opened: Non-blocking.
        counters: Count packets and failures.
    """

    def __init__(self, opened: socket.socket, counters: Counter[str]) -> None:
        self._receive, self._sendto = opened.recvfrom_into, opened.sendto
        self._counters = counters
        # One buffer for all packets: to allocate 2 KB for each costs more than to copy a small packet.
        self._buffer = memoryview(bytearray(_LARGEST_DATAGRAM))

    def channel(self, key: bytes, ssrc: int, frame_ms: int) -> PlainChannel:
        return PlainChannel(key, ssrc, frame_ms, self)

    def read(self, now: float) -> Iterator[Batch]:
        # The kernel keeps what is not taken.
        yield iter(()), self._receive_all()

    def _receive_all(self) -> Iterator[Received]:
        receive, buffer, received = self._receive, self._buffer, 0
        try:
            while received < LARGEST_DRAIN:
                try:
                    size, address = receive(buffer)
                except BlockingIOError:
                    return
                except OSError:
                    # An ICMP error of an earlier send; no packet was read.
                    self._counters["receive_failed"] += 1
                    received += 1
                    continue
                received += 1
                if address[1]:
                    yield bytes(buffer[:size]), address
                else:
                    self._counters["port_zero"] += 1
        finally:
            self._counters["received"] += received

    def send(self, datagram: bytes, address: Address, /) -> None:
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
        counters: Count packets and failures.

    Raises:
        ImportError: The module is not installed.
    """

    def __init__(self, opened: socket.socket, counters: Counter[str]) -> None:
        self._plane = import_module(_NATIVE).Plane(opened.fileno())
        self._counters = counters
        self._batch: Batch = iter(()), iter(())
        self.channel = self._plane.channel
        self.send = self._plane.send
        self.close = self._plane.close

    def read(self, now: float) -> Iterator[Batch]:
        received, count = 0, _NATIVE_DRAIN
        while True:
            # First what is left over from a tick in which a packet led to an exception.
            yield self._batch
            if count < _NATIVE_DRAIN or received >= LARGEST_DRAIN:
                return
            usual, others = self._plane.receive(now, _NATIVE_DRAIN)
            self._batch, count = (iter(usual), iter(others)), len(usual) + len(others)
            received += count
            self._counters["received"] += count + self._count()

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


def open_datagrams(opened: socket.socket, counters: Counter[str], *, native: bool) -> Datagrams:
    """Return the native form if it is wanted and fits, else the one in Python."""
    if not native or (interface := _native_interface()) is None:
        return PlainDatagrams(opened, counters)
    if interface != INTERFACE:
        log.warning("native part does not fit, Python reads and writes", extra={"has": interface, "wants": INTERFACE})
        return PlainDatagrams(opened, counters)
    return NativeDatagrams(opened, counters)


def has_native() -> bool:
    """Return whether a native part is installed that fits."""
    return _native_interface() == INTERFACE


def _native_interface() -> int | None:
    """Return the interface of the native part, 0 if it does not say; None if there is none that can be loaded."""
    try:
        interface = getattr(import_module(_NATIVE), "INTERFACE", 0)
    except (ImportError, OSError, RuntimeError, SystemError) as error:
        # That it is not installed is no fault; a system library that is missing looks nearly the same.
        if not isinstance(error, ModuleNotFoundError) or error.name != _NATIVE:
            log.warning("native part cannot be loaded, Python reads and writes", extra={"reason": str(error)})
        return None
    return interface if isinstance(interface, int) else 0
