"""The device's UDP socket to the server: opened afresh for every channel, and connected, as firmware's is."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from fleet.workbench.sim.connection.udp_socket import Address, UdpSocket, resolve
from fleet.workbench.sim.records.journal import Journal

_MOST_WAITING = 1024


class ServerSocket:
    """One socket from its opening to its end; `rebind` changes its local port, as a NAT that forgot its mapping does.

    Args:
        server: IPv4 address and port.
        journal: Takes the counters.
        connected: Whether only datagrams of the server come in.

    Raises:
        OSError: There is no route to the server.
    """

    def __init__(self, server: Address, journal: Journal, *, connected: bool) -> None:
        self._server = server
        self._journal = journal
        self._connected = connected
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._socket = self._open()
        self.is_open = True

    @classmethod
    async def connect(cls, host: str, port: int, journal: Journal, *, connected: bool = True) -> "ServerSocket | None":
        """Return a socket for an IPv4 address or name, or None when there is no way to it."""
        try:
            return cls(await resolve(host, port), journal, connected=connected)
        except OSError as error:
            journal.note("udp failed", host=host, port=port, reason=str(error))
            return None

    @property
    def local_port(self) -> int:
        return self._socket.port

    def rebind(self) -> None:
        """Go on with another local port."""
        try:
            fresh = self._open()
        except OSError:
            self._journal.count("udp_errors")
            return
        self._socket.close()
        self._socket = fresh

    def send(self, datagram: bytes) -> bool:
        """Send a datagram; return False when the socket is closed or refused it."""
        return self._socket.send(datagram, self._server)

    async def read(self, on_datagram: Callable[[bytes], None]) -> None:
        """Pass on every datagram until the socket is closed, here or by an empty datagram (contract 4.1)."""
        while self.is_open:
            datagram = await self._arrived.get()
            if self.is_open:
                on_datagram(datagram)
            if not datagram:
                self.close()

    def close(self) -> None:
        self.is_open = False
        self._socket.close()
        self._take(b"")  # so that `read` ends

    def _open(self) -> UdpSocket:
        opened = UdpSocket(lambda data, *_: self._take(data), partial(self._journal.count, "udp_errors"))
        opened.open(server=self._server if self._connected else None)
        return opened

    def _take(self, datagram: bytes) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._arrived.put_nowait(datagram)
