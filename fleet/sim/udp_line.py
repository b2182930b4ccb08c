"""The device's UDP socket: connected, opened afresh for every channel."""

import asyncio
import socket
from collections.abc import Callable

import asyncio_dgram
from asyncio_dgram.aio import DatagramClient

from fleet.sim.journal import Journal


class UdpLine:
    """One socket from its opening to its end.

    Args:
        stream: Connected socket.
        journal: Takes the counters.
    """

    def __init__(self, stream: DatagramClient, journal: Journal) -> None:
        self._stream = stream
        self._journal = journal
        self.open = True

    @classmethod
    async def connect(cls, host: str, port: int, journal: Journal) -> "UdpLine | None":
        """Return a socket connected to an IPv4 address or name, or None when that cannot be."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM)
            return cls(await asyncio_dgram.connect(found[0][4]), journal)
        except OSError as error:
            journal.note("udp failed", host=host, port=port, reason=str(error))
            return None

    @property
    def local_port(self) -> int:
        return int(self._stream.sockname[1])

    async def send(self, datagram: bytes) -> bool:
        """Send a datagram; return False when the socket is closed or refused it."""
        if not self.open:
            return False
        try:
            await self._stream.send(datagram)
        except (OSError, asyncio_dgram.TransportClosed):
            self._journal.count("udp_errors")
            return False
        return True

    async def read(self, on_datagram: Callable[[bytes], None]) -> None:
        """Hand on every datagram until the socket is closed, here or by an empty datagram (contract 4.1)."""
        while True:
            try:
                datagram, _ = await self._stream.recv()
            except asyncio_dgram.TransportClosed:
                return
            except OSError:
                self._journal.count("udp_errors")
                continue
            if not self.open:
                return
            on_datagram(datagram)
            if not datagram:
                self.close()

    def close(self) -> None:
        self.open = False
        self._stream.close()
