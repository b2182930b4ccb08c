"""The UDP sockets of a scripted device: datagrams as a test wants them, and a capture of all that comes."""

from fleet.workbench.sim.connection.datagram import HEADER, Cryptor
from fleet.workbench.sim.connection.udp_socket import ANYWHERE, Address, UdpSocket, resolve
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.scripted.capture import Capture, Datagram

_OTHER_LOOPBACK = "127.77.77.77"
"""Another address of this machine."""


class ScriptedAudio(Capture):
    """The sockets of one channel; a further hello changes keys and counters, not the socket.

    The sockets are not connected, so that datagrams of foreign senders are captured too.
    """

    def __init__(self, hello: ServerHello, profile: Profile) -> None:
        super().__init__()
        self.hello = hello
        self.headers: list[tuple[bytes, int]] = []
        """Header and payload length of what was sent by `send` since the last hello."""
        self.server: Address = (hello.server, hello.port)
        """Where the server is; numeric once the channel is open."""
        self._profile = profile
        self._cryptor = Cryptor(hello, profile)
        self._epoch = 1
        self._sockets: list[UdpSocket] = []

    @property
    def port(self) -> int:
        """The local port that is in use."""
        return self._sockets[-1].port

    @property
    def sent(self) -> int:
        """The last sequence number that `send` chose itself."""
        return self._cryptor.sent

    @sent.setter
    def sent(self, sequence: int) -> None:
        self._cryptor.sent = sequence

    async def open(self) -> None:
        """Look the server up and bind a socket."""
        self.server = await resolve(*self.server)
        self.rebind()

    def rebind(self) -> int:
        """Go on from another port, as behind a NAT that forgot its mapping; return the port.

        The old port stays open for what still comes there.
        """
        own = UdpSocket(self._receive)
        own.open()
        self._sockets.append(own)
        return own.port

    def stranger(self) -> UdpSocket:
        """Return the socket of somebody else, with another address if the server is on this machine.

        What it gets is captured like all else.
        """
        try:
            other = UdpSocket(self._receive)
            other.open(_OTHER_LOOPBACK if self.server[0].startswith("127.") else ANYWHERE)
        except OSError:
            other = UdpSocket(self._receive)
            other.open()
        self._sockets.insert(0, other)
        return other

    def rekey(self, hello: ServerHello) -> None:
        """Take the keys of a further hello; counters begin anew, the address stays."""
        self.hello, self.headers = hello, []
        self._cryptor = Cryptor(hello, self._profile)
        self._epoch += 1

    def seal(self, payload: bytes, *, sequence: int, timestamp: int = 0) -> bytes:
        """Return an uplink datagram as firmware makes it."""
        return self._cryptor.seal(payload, timestamp, sequence)[0]

    def send(self, payload: bytes, *, sequence: int | None = None, timestamp: int = 0) -> None:
        """Send one packet with the next sequence number, or with this one."""
        datagram, _ = self._cryptor.seal(payload, timestamp, sequence)
        self.headers.append((datagram[:HEADER], len(payload)))
        self.send_raw(datagram)

    def send_raw(self, datagram: bytes) -> None:
        self._sockets[-1].send(datagram, self.server)

    def crypt(self, header: bytes, body: bytes) -> bytes:
        """Encrypt or decrypt with the key of the session."""
        return self._cryptor.crypt(header, body)

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def _receive(self, data: bytes, source: Address, port: int, at: float) -> None:
        header, body = data[:HEADER], data[HEADER:]
        payload = self.crypt(header, body) if len(header) == HEADER else b""
        self.add(Datagram(at, data, payload, source, port, self._epoch))
