"""A UDP socket that tells when each datagram arrived, not when somebody found time to look.

Where the kernel notes the time of arrival, a suite that is held up itself sees a server's pacing undistorted.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable

from fleet.workbench.conformance import clock

Address = tuple[str, int]
Receive = Callable[[bytes, Address, int, float], None]

_SO_TIMESTAMPNS = 35
"""Linux's number; the module socket does not name it."""
_STAMP = struct.Struct("@ll")
_LARGEST = 65_535
_OLDEST = 60.0
"""Seconds; an older stamp is a clock that was set, no datagram that waited."""


class StampedSocket:
    """One unconnected socket; made and used inside one event loop.

    Args:
        receive: Takes every datagram, its sender, the local port, and its arrival on the clock.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._closed = False
        self.port = 0
        """The local port, once it is open."""

    def open(self, host: str) -> None:
        """Bind to a free port of an address.

        Raises:
            OSError: The address is none of this machine's.
        """
        self._socket.setblocking(False)
        if sys.platform == "linux":
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            self._socket.bind((host, 0))
        except OSError:
            self._closed = True
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self._loop.add_reader(self._socket, self._read)

    def send(self, datagram: bytes, address: Address) -> None:
        """Send a datagram; what the kernel does not take is lost, as on any network."""
        if self._closed:
            return
        try:
            self._socket.sendto(datagram, address)
        except OSError:
            return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _read(self) -> None:
        while not self._closed:
            try:
                data, extra, _, address = self._socket.recvmsg(_LARGEST, socket.CMSG_SPACE(_STAMP.size))
            except BlockingIOError:
                return
            except OSError:
                # A port that nobody listens on: the checks see that nothing comes.
                continue
            self._receive(data, address, self.port, clock.now() - _age(extra))


def _age(extra: list[tuple[int, int, bytes]]) -> float:
    """Return for how many seconds a datagram has waited, 0 where the kernel does not tell."""
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= _STAMP.size:
            seconds, nanoseconds = _STAMP.unpack_from(data)
            age = time.clock_gettime(time.CLOCK_REALTIME) - seconds - nanoseconds / 1e9
            return age if 0 <= age < _OLDEST else 0.0
    return 0.0
