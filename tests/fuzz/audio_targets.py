"""Datagrams and Opus: nothing in a packet is trusted beyond being audio."""

import struct
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random

from fleet.adapters.speech.opus import Decoder, Encoder, OpusError
from fleet.roles.edge.listening.jitter_buffer import MOST_FILLED, MOST_HELD, JitterBuffer
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire import packet, toc
from fleet.wire.messages import AudioFormat
from fleet.wire.packet import Channel
from tests.fuzz import damage
from tests.fuzz.target import Target
from tests.support.uplink_channel import uplink_channel

KEY, SSRC, FRAME_MS = bytes(range(16)), 0x11223344, 60
UPLINK = AudioFormat(16_000, FRAME_MS)
WIDTH = 64
HOME, AWAY, ELSEWHERE = ("192.0.2.1", 4000), ("192.0.2.1", 4001), ("198.51.100.9", 9)
_HEADER = struct.Struct(">BBHIII")
_CHANNEL = Channel(KEY, SSRC)
PROOFS, LARGEST_JUMP = 4, 3000
AHEAD, FASTEST = 100, 1.02
"""Packets that a device may be ahead of the clock, and how fast its own may be."""
REASONS = {"flags", "jump", "late", "replay", "rate", "not_audio", "unproved"}

Datagram = tuple[bytes, tuple[str, int], float]
"""What a socket gives: the bytes, where they came from, when."""


def seal(payload: bytes, sequence: int, flags: int = 0, timestamp: int = 0) -> bytes:
    """Return an uplink datagram as the device sends it (contract 4.1)."""
    header = _HEADER.pack(1, flags, len(payload), SSRC, timestamp, sequence)
    return header + _CHANNEL.open(header + payload)  # CTR: opening is sealing


def speech(random: Random) -> bytes:
    """Return a payload that says that it lasts 60 ms."""
    return bytes((random.choice((0x18, 0x58, 0x98, 0x58)),)) + random.randbytes(random.randrange(3, 60))


def make_datagrams(random: Random) -> list[Datagram]:
    """Return what one socket gets for one session: a stream, its echoes, forgeries and noise."""
    sent: list[Datagram] = []
    sequence, now = 0, 0.0
    for _ in range(random.randrange(1, 30)):
        now += random.choice((0.0, 0.001, 0.06, 0.2, 3.0))
        address = random.choice((HOME, HOME, HOME, AWAY, ELSEWHERE))
        match random.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                sequence += random.choice((1, 1, 1, 2, 5, 64))
                sent.append((seal(speech(random), sequence), address, now))
            case 5 if sent:
                sent.append((random.choice(sent)[0], address, now))
            case 6:
                step = random.choice((LARGEST_JUMP, LARGEST_JUMP + 1, 2**31, -WIDTH, 1 - WIDTH, -1, -sequence))
                sent.append((seal(speech(random), max(0, sequence + step) % 2**32), address, now))
            case 7:
                sent.append((seal(random.randbytes(random.randrange(4)), sequence + 1), address, now))
            case 8:
                forged = seal(speech(random), sequence + 1)[: packet.HEADER]
                sent.append((forged + random.randbytes(len(forged)), address, now))
            case 9:
                sent.append((random.randbytes(random.randrange(64)), address, now))
            case _:
                whole = seal(speech(random), sequence + 1, flags=random.choice((0, 0, 0x80)), timestamp=1)
                sent.append((damage.damage_bytes(random, whole, whole), address, now))
    return sent


@dataclass(slots=True)
class Witness:
    """A session's stream and order beside a plain account of what they may do (contract 4.6)."""

    drops: Counter[str] = field(default_factory=Counter)
    stream: UplinkStream = field(init=False)
    order: JitterBuffer = field(default_factory=JitterBuffer)
    passed: set[int] = field(default_factory=set)
    newest: int = 0
    released: list[bytes] = field(default_factory=list)
    good: list[tuple[int, tuple[str, int]]] = field(default_factory=list)
    """Numbers and senders of good packets, as they came."""

    def __post_init__(self) -> None:
        self.stream = UplinkStream(uplink_channel(KEY, SSRC), UPLINK, self.drops, 0.0)

    def take(self, datagram: bytes, address: tuple[str, int], now: float) -> bool:
        """Hand over one datagram and check all that follows; return whether it was admitted."""
        header = packet.parse(datagram)
        if header is None:
            return False
        before, dropped = self.stream.address, self.drops.total()
        opened = _CHANNEL.open(datagram)
        good = toc.duration_ms(opened) == FRAME_MS
        if good:
            self.good.append((header.sequence, address))
        payload = self.stream.admit(header, datagram, address, now)
        proved, self.stream.proved = self.stream.proved, []
        assert set(self.drops) <= REASONS
        self._check_address(before, address)
        if not payload:
            assert not proved
            assert payload is None or address == before
            assert payload is None or self.drops.total() == dropped
            return False
        assert good
        assert payload == opened
        admitted = [*proved, (header.sequence, payload)]
        assert header.flags == 0
        assert [number for number, _ in proved] == sorted({number for number, _ in proved})
        self._check_order(self.order.rejoin(admitted[0][0]))
        for number, one in admitted:
            assert number not in self.passed
            assert 0 < number <= AHEAD + now * FASTEST * 1000 / FRAME_MS
            assert toc.duration_ms(one) == FRAME_MS
            assert (number, address) in self.good
            self.newest = max(self.newest, number)
            self.passed.add(number)
            self._check_order(self.order.push(number, number.to_bytes(4), now))
        return True

    def _check_address(self, before: tuple[str, int] | None, address: tuple[str, int]) -> None:
        """Whoever becomes the device has sent so many good packets, the last of them now."""
        if self.stream.address != before:
            assert self.stream.address == address
            assert sum(sender == address for _, sender in self.good) >= PROOFS

    def _check_order(self, out: list[bytes | None]) -> None:
        assert out.count(None) <= MOST_FILLED * (MOST_HELD + 1)
        assert len(self.order._held) <= MOST_HELD
        self.note(out)

    def note(self, out: list[bytes | None]) -> None:
        new = [one for one in out if one is not None]
        assert new == sorted(set(new))
        self.released += new

    def finish(self) -> None:
        """Flush: every admitted packet was released once, in order, or was counted as late."""
        self.note(self.order.flush())
        assert not self.order._held
        assert len(set(self.released)) == len(self.released)
        assert len(self.released) + self.order.late == len(self.passed)


def check_datagrams(datagrams: list[Datagram]) -> None:
    witness = Witness()
    for datagram in datagrams:
        witness.take(*datagram)
    witness.finish()


@cache
def _decoder(rate: int) -> Decoder:
    return Decoder(rate)


@cache
def _encoded() -> tuple[bytes, ...]:
    """Return real packets of noise, in each of the frame lengths."""
    random = Random(1)
    packets = []
    for frame_ms in (20, 60, 120):
        encoder = Encoder(16_000, frame_ms, complexity=0)
        packets += [encoder.encode(random.randbytes(encoder.frame_bytes)) for _ in range(3)]
    return (*packets, *(toc.empty_packet(frame_ms) for frame_ms in (5, 10, 20, 40, 60, 80, 100, 120)), b"\x58")


def make_packets(random: Random) -> list[bytes]:
    """Return some Opus packets of one stream, most of them damaged."""
    packets = []
    for _ in range(random.randrange(1, 4)):
        real = random.choice(_encoded())
        noise = random.randbytes(random.choice((0, 1, 2, 3, 20, 80, 1300)))
        packets.append(random.choice((real, damage.damage_bytes(random, real, real), noise)))
    return packets


def check_packets(packets: list[bytes]) -> None:
    """A packet is refused, or lasts as long as its first bytes say."""
    rate = 16_000 if len(packets) % 2 else 48_000
    decoder = _decoder(rate)
    decoder.reset()
    for one in packets:
        said = toc.duration_ms(one)
        try:
            pcm = decoder.decode(one)
        except OpusError:
            continue
        assert said is not None
        assert len(pcm) == said * rate // 1000 * 2
    assert len(decoder.conceal(FRAME_MS)) == rate * FRAME_MS // 1000 * 2


TARGETS = (
    Target("datagrams", make_datagrams, check_datagrams, 8),
    Target("opus", make_packets, check_packets, 3),
)
