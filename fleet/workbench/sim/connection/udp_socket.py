"""The device's UDP socket: opened afresh for every channel, and connected, as firmware's is."""

import asyncio
import socket
from collections.abc import Callable

import asyncio_dgram
from asyncio_dgram.aio import DatagramClient, DatagramServer

from fleet.workbench.sim.records.journal import Journal

Address = tuple[str, int]
Stream = DatagramClient | DatagramServer


class UdpSocket:
    """One socket from its opening to its end; behind a NAT that forgets, its local port may change.

    Args:
        stream: The socket.
        server: Where to.
        journal: Takes the counters.
    """

    def __init__(self, stream: Stream, server: Address, journal: Journal) -> None:
        self._stream = stream
        self._server = server
        self._journal = journal
        self._open = True

    @classmethod
    async def connect(cls, host: str, port: int, journal: Journal, *, connected: bool = True) -> "UdpSocket | None":
        """Return a socket for an IPv4 address or name, or None when that cannot be.

        Args:
            host: Of the server.
            port: Of the server.
            journal: Takes the counters.
            connected: Whether only the server's datagrams come in.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM)
            server = (str(found[0][4][0]), int(found[0][4][1]))
            return cls(await _socket(server, connected=connected), server, journal)
        except OSError as error:
            journal.note("udp failed", host=host, port=port, reason=str(error))
            return None

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def local_port(self) -> int:
        return int(self._stream.sockname[1])

    async def rebind(self) -> None:
        """Go on with another local port."""
        old, connected = self._stream, isinstance(self._stream, DatagramClient)
        try:
            self._stream = await _socket(self._server, connected=connected)
        except OSError:
            self._journal.count("udp_errors")
            return
        old.close()
        if not self._open:
            self._stream.close()

    async def send(self, datagram: bytes) -> bool:
        """Send a datagram; return False when the socket is closed or refused it."""
        if not self._open:
            return False
        try:
            if isinstance(self._stream, DatagramClient):
                await self._stream.send(datagram)
            else:
                await self._stream.send(datagram, self._server)
        except (OSError, asyncio_dgram.TransportClosed):
            self._journal.count("udp_errors")
            return False
        return True

    async def read(self, on_datagram: Callable[[bytes], None]) -> None:
        """Hand on every datagram until the socket is closed, here or by an empty datagram (contract 4.1)."""
        while self.is_open:
            stream = self._stream
            try:
                datagram, _ = await stream.recv()
            except asyncio_dgram.TransportClosed:
                if stream is self._stream:
                    return
                continue
            except OSError:
                self._journal.count("udp_errors")
                continue
            if self.is_open:
                on_datagram(datagram)
            if not datagram:
                self.close()

    def close(self) -> None:
        self._open = False
        self._stream.close()


async def _socket(server: Address, *, connected: bool) -> Stream:
    if connected:
        return await asyncio_dgram.connect(server)
    return await asyncio_dgram.bind(("0.0.0.0", 0))  # noqa: S104 - py-xiaozhi listens to anybody
