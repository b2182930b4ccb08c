"""A probe's UDP sockets: datagrams by hand, and a capture of all that comes."""

import asyncio
import socket

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.workbench.conformance.probe.capture import Capture, Datagram
from fleet.workbench.conformance.probe.stamped_socket import Address, StampedSocket
from fleet.workbench.sim.messages.server_hello import ServerHello

HEADER = 16
_ANYWHERE = "0.0.0.0"  # noqa: S104 - the kernel chooses the address
_ELSEWHERE = "127.77.77.77"
"""Another address of this machine."""


class AudioPort(Capture):
    """The sockets of one channel; a further hello changes keys and counters, not the socket."""

    def __init__(self, hello: ServerHello) -> None:
        super().__init__()
        self.hello = hello
        self.sent = 0
        """The last sequence number used by `send`."""
        self.headers: list[tuple[bytes, int]] = []
        """Header and payload length of what was sent by `send` since the last hello."""
        self.server: Address = (hello.server, hello.port)
        """Where the server is, by its number once the channel is open."""
        self._epoch = 1
        self._sockets: list[StampedSocket] = []

    @property
    def port(self) -> int:
        """The local port that is in use."""
        return self._sockets[-1].port

    async def open(self) -> None:
        """Look the server up and bind a socket; it is not connected, so that foreign senders are seen too."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self.server, family=socket.AF_INET, type=socket.SOCK_DGRAM)
        self.server = (str(found[0][4][0]), self.hello.port)
        self.rebind()

    def rebind(self) -> int:
        """Go on from another port, as behind a NAT that forgot its mapping; return the port.

        The old port stays open for what still comes there.
        """
        own = StampedSocket(self._receive)
        own.open(_ANYWHERE)
        self._sockets.append(own)
        return own.port

    def stranger(self) -> StampedSocket:
        """Return somebody else's socket, from another address where the server is on this machine.

        What it gets is in `datagrams`, as all else.
        """
        other = StampedSocket(self._receive)
        try:
            other.open(_ELSEWHERE if self.server[0].startswith("127.") else _ANYWHERE)
        except OSError:
            other = StampedSocket(self._receive)
            other.open(_ANYWHERE)
        self._sockets.insert(0, other)
        return other

    def rekey(self, hello: ServerHello) -> None:
        """Take the keys of a further hello; counters begin anew, the address stays."""
        self.hello, self.sent, self.headers = hello, 0, []
        self._epoch += 1

    def seal(self, payload: bytes, *, sequence: int, timestamp: int = 0) -> bytes:
        """Return an uplink datagram as firmware makes it."""
        nonce = self.hello.nonce
        header = b"".join(
            (nonce[:2], len(payload).to_bytes(2), nonce[4:8], timestamp.to_bytes(4), sequence.to_bytes(4))
        )
        return header + self.crypt(header, payload)

    def send(self, payload: bytes, *, sequence: int | None = None, timestamp: int = 0) -> None:
        """Send one packet with the next sequence number, or with this one."""
        if sequence is None:
            self.sent += 1
            sequence = self.sent
        datagram = self.seal(payload, sequence=sequence, timestamp=timestamp)
        self.headers.append((datagram[:HEADER], len(payload)))
        self.send_raw(datagram)

    def send_raw(self, datagram: bytes) -> None:
        self._sockets[-1].send(datagram, self.server)

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def crypt(self, header: bytes, body: bytes) -> bytes:
        """Encrypt or decrypt with the session's key."""
        context = Cipher(algorithms.AES(self.hello.key), modes.CTR(header)).encryptor()
        return context.update(body) + context.finalize()

    def _receive(self, data: bytes, source: Address, port: int, at: float) -> None:
        header, body = data[:HEADER], data[HEADER:]
        payload = self.crypt(header, body) if len(header) == HEADER else b""
        self.add(Datagram(at, data, payload, source, port, self._epoch))
