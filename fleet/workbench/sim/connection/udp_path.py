"""The path of a channel's datagrams: the socket, and what the simulated network does to them."""

import random
from collections.abc import Callable, Coroutine

from fleet.workbench.sim.connection.server_socket import ServerSocket
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.network.conditions import DatagramCallbacks, NetworkConditions
from fleet.workbench.sim.network.delay_line import DelayLine
from fleet.workbench.sim.records.journal import Journal

Spawn = Callable[[Coroutine[None, None, None], str], None]

_HEADER = 16
_REBOUND_SECONDS = 2.0
_FORGED_SIZES = (1, 200)


class UdpPath:
    """The path of one channel, from its opening to its end.

    Args:
        socket: The device's socket.
        forger: Another socket, if datagrams are to be forged.
        network: What happens on the way.
        ends: Callbacks for the downlink.
        journal: Takes steps and counters.
    """

    def __init__(
        self,
        socket: ServerSocket,
        forger: ServerSocket | None,
        network: NetworkConditions,
        ends: DatagramCallbacks,
        journal: Journal,
    ) -> None:
        self._socket = socket
        self._forger = forger
        self._network = network
        self._ends = ends
        self._journal = journal
        self._sent = 0
        self._upward = DelayLine(journal.clock, self._send)
        self._downward = DelayLine(journal.clock, self._deliver)

    @classmethod
    async def open(
        cls,
        hello: ServerHello,
        network: NetworkConditions,
        ends: DatagramCallbacks,
        journal: Journal,
        *,
        connected: bool,
    ) -> "UdpPath | None":
        """Return the path to a server, or None when there is no socket."""
        socket = await ServerSocket.connect(hello.server, hello.port, journal, connected=connected)
        if socket is None:
            return None
        forger = await ServerSocket.connect(hello.server, hello.port, journal) if network.faults.forged else None
        return cls(socket, forger, network, ends, journal)

    @property
    def is_open(self) -> bool:
        return self._socket.is_open

    @property
    def local_port(self) -> int:
        return self._socket.local_port

    def start(self, spawn: Spawn) -> None:
        """Begin to work, in tasks that end with the socket."""
        spawn(self._socket.read(self._arrive), "sim-udp")
        if not (self._network.up.calm and self._network.down.calm):
            spawn(self._upward.run(), "sim-udp-up")
            spawn(self._downward.run(), "sim-udp-down")

    def send(self, datagram: bytes) -> bool:
        """Send a datagram upwards; return False when there is no socket."""
        self._sent += 1
        self._rebind_if_due()
        self._forge(datagram)
        now = self._journal.clock()
        copies = 0
        for arrival in self._network.up.carry(now):
            copies += 1
            if arrival.delay > 0:
                self._upward.put(datagram, now + arrival.delay)
            elif not self._socket.send(datagram):
                return False
        if not copies:
            self._journal.count("uplink_lost")
        return self._socket.is_open

    def close(self) -> None:
        for part in (self._upward, self._downward, self._socket, self._forger):
            if part:
                part.close()

    async def _send(self, datagram: bytes) -> None:
        self._socket.send(datagram)

    def _arrive(self, datagram: bytes) -> None:
        if not self._ends.arrived(datagram):
            return
        now = self._journal.clock()
        copies = 0
        for arrival in self._network.down.carry(now):
            copies += 1
            if arrival.late:
                self._ends.missed()
            if arrival.delay > 0:
                self._downward.put(datagram, now + arrival.delay)
            else:
                self._ends.received(datagram)
        if not copies:
            self._journal.count("downlink_lost")
            self._ends.missed()

    async def _deliver(self, datagram: bytes) -> None:
        if self._socket.is_open:
            self._ends.received(datagram)

    def _rebind_if_due(self) -> None:
        faults = self._network.faults
        periodic = faults.rebind_every and self._sent > 1 and (self._sent - 1) % faults.rebind_every == 0
        if self._sent == faults.rebind_at or periodic:
            self._socket.rebind()
            self._journal.excuse(("underrun", "pause"), _REBOUND_SECONDS)
            self._journal.note("rebind", local_port=self._socket.local_port)

    def _forge(self, datagram: bytes) -> None:
        """Send what an attacker who knows the ssrc would send: a plausible header, and noise."""
        share = self._network.faults.forged
        if self._forger is None:
            return
        whole = int(share) + self._network.happens(share % 1)
        for number in range(whole):
            self._forger.send(forge(datagram, number + 1, self._network.chance))
            self._journal.count("forged")


def forge(datagram: bytes, ahead: int, chance: random.Random) -> bytes:
    """Return a datagram that differs from a true one in its number, `ahead` of it, and its payload."""
    payload = chance.randbytes(chance.randint(*_FORGED_SIZES))
    number = (int.from_bytes(datagram[12:_HEADER], "big") + ahead) & 0xFFFFFFFF
    return datagram[:2] + len(payload).to_bytes(2, "big") + datagram[4:12] + number.to_bytes(4, "big") + payload
