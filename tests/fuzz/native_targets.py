"""The native part of the audio socket beside the one in Python: the same datagrams, and the same must come out."""

import atexit
import socket
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random

from fleet.roles.edge.transport.datagrams import Address, Datagrams, has_native, open_datagrams
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire import packet
from tests.fuzz import damage
from tests.fuzz.audio_targets import KEY, SSRC, UPLINK, seal, speech
from tests.fuzz.target import Target
from tests.support.datagram_arrival import deliver

HOST = "127.0.0.1"
_SENDERS = 3
_USUAL = 0x58

Batch = tuple[float, list[tuple[int, bytes]]]
"""When a socket is read, and the senders and datagrams that it holds."""


def make_batches(random: Random) -> list[Batch]:
    """Return what one socket gets: a device that goes on, and now and then something else."""
    batches: list[Batch] = []
    sequence, now, home = random.choice((0, 0, 0, 40)), 0.0, 0
    for _ in range(random.randrange(4, 14)):
        now += random.choice((0.01, 0.06, 0.06, 0.3, 1.0))
        sent: list[tuple[int, bytes]] = []
        for _ in range(random.choice((1, 1, 2, 5, 40))):
            sequence += random.choice((1,) * 100 + (0, 2, 5))
            payload = bytes((_USUAL,)) + random.randbytes(random.randrange(3, 40))
            whole = seal(payload, sequence, timestamp=random.choice((0, 0, 960)))
            sender = home
            match random.randrange(200):
                case 0:
                    whole = damage.damage_bytes(random, whole, whole)
                case 1:
                    sender = random.randrange(_SENDERS)
                case 2:
                    whole = seal(speech(random), sequence, flags=random.choice((0, 0, 0x40, 0x80)))
                case 3:
                    sequence = max(0, sequence - random.randrange(5))
                case 4:
                    home = random.randrange(_SENDERS)
                case 5:
                    whole = seal(bytes((_USUAL,)) + bytes(random.choice((1275, 1276))), sequence)
                case _:
                    pass
            sent.append((sender, whole))
        batches.append((now, sent))
    return batches


@dataclass
class Session:
    """A session's stream at one form of a socket, as `PacketRouter` and `EdgeSession` use it; keeps what it admits."""

    admitted: list[object] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)
    """Datagrams that are no packets of the session."""
    usual: int = 0
    """Packets that the native part admitted."""
    drops: Counter[str] = field(default_factory=Counter)

    def open(self, datagrams: Datagrams) -> None:
        self.stream = UplinkStream(datagrams.channel(KEY, SSRC, UPLINK.frame_ms), UPLINK, self.drops, 0.0)

    def receive(self, datagram: bytes, address: Address, now: float) -> None:
        header = packet.parse(datagram)
        if header is None or header.ssrc != SSRC:
            self.others.append(datagram)
            return
        self._note(header.sequence, header.timestamp, self.stream.admit(header, datagram, address, now))

    def take(self, datagrams: Datagrams, now: float) -> None:
        """Take what came, as `PacketRouter` does."""
        for usual, others in datagrams.read(now):
            for ssrc, sequence, timestamp, payload in usual:
                assert ssrc == SSRC
                self.usual += 1
                self._note(sequence, timestamp, payload)
            for datagram, address in others:
                self.receive(datagram, address, now)

    def _note(self, sequence: int, timestamp: int, payload: bytes | None) -> None:
        self.admitted.append((sequence, timestamp, payload, self.stream.address, self.stream.proved))
        self.stream.proved = []


@cache
def _sockets() -> tuple[list[socket.socket], list[socket.socket]]:
    """Return a socket for each form, and those of the senders."""
    made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2 + _SENDERS)]
    for one in made:
        one.bind((HOST, 0))
        one.setblocking(False)
        atexit.register(one.close)
    return made[:2], made[2:]


def check_batches(batches: list[Batch]) -> Session:
    """Both forms admit the same packets, count the same drops and end with the same address; return the native one."""
    servers, senders = _sockets()
    plain, native = Session(), Session()
    forms = [
        (session, open_datagrams(server, session.drops, native=session is native), server)
        for session, server in zip((plain, native), servers, strict=True)
    ]
    for session, datagrams, _ in forms:
        session.open(datagrams)
    for now, sent in batches:
        for sender, datagram in sent:
            for server in servers:
                deliver(senders[sender], datagram, server)
        for session, datagrams, _ in forms:
            session.take(datagrams, now)
    assert plain.drops["received"] == sum(len(sent) for _, sent in batches)
    assert (native.admitted, native.others) == (plain.admitted, plain.others)
    assert native.drops == plain.drops
    assert native.stream.newest == plain.stream.newest
    assert native.stream.expected == plain.stream.expected
    for _, datagrams, _ in forms:
        datagrams.close()
    return native


TARGETS = (Target("native", make_batches, check_batches, 3),) if has_native() else ()
