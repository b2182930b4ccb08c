"""A UDP socket that knows when each datagram arrived, not only when this process read it.

Linux notes the time of arrival, so a stalled process does not distort the measured pacing of a server. Other systems,
and emulators of Linux, do not note it: there a datagram arrives when it is read.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from fleet.workbench.sim.records import clock

Address = tuple[str, int]
Receive = Callable[[bytes, Address, int, float], None]
"""Takes a datagram, its sender, the local port, and its arrival on `clock`."""

ANYWHERE = "0.0.0.0"  # noqa: S104 - the kernel chooses the address
_SO_TIMESTAMPNS = 35
"""Linux's number; the module socket does not name it."""
_STAMP = struct.Struct("@ll")
_LARGEST = 65_535
_OLDEST = 60.0
"""Seconds. A stamp that is older means that the system clock was set, not that a datagram waited."""


class UdpSocket:
    """One IPv4 socket; create and use it inside one event loop.

    Args:
        receive: Takes every datagram.
        failed: Called when the kernel reports an error for this socket, such as a closed port at the other end.
    """

    def __init__(self, receive: Receive, failed: Callable[[], None] = lambda: None) -> None:
        self._receive = receive
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._closed = False
        self.port = 0
        """The local port, once it is open."""

    def open(self, host: str = ANYWHERE, server: Address | None = None) -> None:
        """Bind to a free port of an address; with `server`, accept datagrams from this address only.

        Raises:
            OSError: The address does not belong to this machine, or there is no route to the server.
        """
        self._socket.setblocking(False)
        if sys.platform == "linux":
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            self._socket.bind((host, 0))
            if server:
                self._socket.connect(server)
        except OSError:
            self._closed = True
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self._loop.add_reader(self._socket, self._read)

    def send(self, datagram: bytes, address: Address) -> bool:
        """Send a datagram; return False if the socket is closed or the kernel did not take it."""
        if self._closed:
            return False
        try:
            self._socket.sendto(datagram, address)
        except OSError:
            self._failed()
            return False
        return True

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
                self._failed()
                continue
            self._receive(data, address, self.port, clock.now() - _age(extra))


def _age(extra: list[tuple[int, int, bytes]]) -> float:
    """Return for how many seconds a datagram has waited, 0 where the kernel does not note it."""
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= _STAMP.size:
            seconds, nanoseconds = _STAMP.unpack_from(data)
            age = time.clock_gettime(time.CLOCK_REALTIME) - seconds - nanoseconds / 1e9
            return age if 0 <= age < _OLDEST else 0.0
    return 0.0


async def resolve(host: str, port: int) -> Address:
    """Return the IPv4 address of a server.

    Raises:
        OSError: The name is unknown.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM)
    return str(found[0][4][0]), int(found[0][4][1])
