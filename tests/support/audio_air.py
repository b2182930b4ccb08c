"""One session's uplink in virtual time: a device, forgers, and what the edge's real classes make of their datagrams."""

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from fleet.roles.edge.listening.jitter_buffer import JitterBuffer
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire import packet
from fleet.wire.messages import AudioFormat
from fleet.wire.packet import Channel
from tests.support.uplink_channel import uplink_channel

Address = tuple[str, int]

KEY, SSRC = bytes(range(16)), 0x11223344
HOME, AWAY, STRANGER = ("192.0.2.1", 4000), ("192.0.2.1", 4001), ("198.51.100.9", 9)
STOCK = AudioFormat(16_000, 60)
TOCS = {20: 0x48, 40: 0x50, 60: 0x58}
_HEADER = struct.Struct(">BBHIII")
_DEVICE = Channel(KEY, SSRC)
"""One for all packets, which takes nothing from one to the next."""


def header(length: int, sequence: int, flags: int = 0, ssrc: int = SSRC) -> bytes:
    return _HEADER.pack(1, flags, length, ssrc, 0, sequence)


def seal(payload: bytes, sequence: int, flags: int = 0) -> bytes:
    """Return an uplink datagram as the device makes it (contract 4.1)."""
    head = header(len(payload), sequence, flags)
    return head + _DEVICE.open(head + payload)  # CTR: opening is sealing


def speech(sequence: int, toc: int = 0x58) -> bytes:
    """Return a payload that names its packet."""
    return bytes((toc,)) + b"packet" + sequence.to_bytes(4, "big") + bytes(20)


@dataclass
class Air:
    """The edge's side: hands over datagrams and notes which of the device's packets are heard, and when."""

    frame_ms: int = 60
    sample_rate: int = 16_000
    drops: Counter[str] = field(default_factory=Counter)
    heard: list[tuple[float, int]] = field(default_factory=list)
    """When the packet of which number was given to whoever listens."""
    homes: list[Address | None] = field(default_factory=lambda: [None])
    """Where the downlink went, one after the other."""
    silences: int = 0

    def __post_init__(self) -> None:
        uplink = AudioFormat(self.sample_rate, self.frame_ms)
        self.stream = UplinkStream(uplink_channel(KEY, SSRC), uplink, self.drops, 0.0)
        self.order = JitterBuffer()

    @property
    def toc(self) -> int:
        return TOCS[self.frame_ms]

    @property
    def numbers(self) -> list[int]:
        return [number for _, number in self.heard]

    def take(self, datagram: bytes, address: Address, now: float) -> None:
        """Do with a datagram what `fleet.roles.edge.session` does."""
        found = packet.parse(datagram)
        assert found
        self.use(found.sequence, self.stream.admit(found, datagram, address, now), now)

    def use(self, sequence: int, payload: bytes | None, now: float) -> None:
        """Note what the stream made of a datagram, and hand over its payload."""
        if self.stream.address != self.homes[-1]:
            self.homes.append(self.stream.address)
        proved, self.stream.proved = self.stream.proved, []
        out = self.order.rejoin(proved[0][0]) if proved else []
        for number, one in proved:
            out += self.order.push(number, one, now)
        if payload:
            out += self.order.push(sequence, payload, now)
        self.silences += payload == b""
        self.heard += [(now, int.from_bytes(one[7:11], "big")) for one in out if one and one[1:7] == b"packet"]

    def send(self, numbers: Iterable[int], now: float, address: Address = HOME, toc: int | None = None) -> None:
        """Let the device's packets of these numbers come at once."""
        for number in numbers:
            self.take(seal(speech(number, self.toc if toc is None else toc), number), address, now)

    def stream_on(self, numbers: Iterable[int], now: float, address: Address = HOME, toc: int | None = None) -> float:
        """Let them come in real time; return when the next one is due."""
        for number in numbers:
            self.send([number], now, address, toc)
            now += self.frame_ms / 1000
        return now


@dataclass(frozen=True)
class Sight:
    """What somebody sees who sees all datagrams."""

    newest: int
    """The device's last number."""
    seen: list[bytes]
    """The device's last datagrams."""
    ssrc: int = SSRC

    def ahead(self, random: Random, most: int, length: int = 60) -> bytes:
        """Return a datagram of random bytes with one of the next numbers."""
        return noise(random, self.newest + random.randint(1, most), length, self.ssrc)


Forge = Callable[[Random, Sight], bytes]
"""Makes a datagram without the key."""


def noise(random: Random, sequence: int, length: int = 60, ssrc: int = SSRC) -> bytes:
    return header(length, sequence, ssrc=ssrc) + random.randbytes(length)


def replay(random: Random, sight: Sight) -> bytes:
    return random.choice(sight.seen)


def flip_replayed(random: Random, sight: Sight) -> bytes:
    """Flip a bit of a payload under the header that it was sent with."""
    datagram = bytearray(random.choice(sight.seen))
    datagram[random.randrange(16, len(datagram))] ^= 1 << random.randrange(8)
    return bytes(datagram)


def flip_renumbered(random: Random, sight: Sight) -> bytes:
    """Send a payload that was seen under a number that comes next."""
    datagram = random.choice(sight.seen)
    return datagram[:12] + (sight.newest + random.randint(1, 3)).to_bytes(4, "big") + datagram[16:]


FORGERIES: dict[str, Forge] = {
    "next number": lambda random, sight: sight.ahead(random, 1),
    "next few numbers": lambda random, sight: sight.ahead(random, 3),
    "next second": lambda random, sight: sight.ahead(random, 17),
    "the same few numbers": lambda random, sight: noise(
        random, 20 + random.randrange(12) + sight.newest // 40 * 40, 60, sight.ssrc
    ),
    "far ahead": lambda random, sight: sight.ahead(random, 2999),
    "tiny": lambda random, sight: sight.ahead(random, 3, random.randrange(4)),
    "replays": replay,
    "flipped replays": flip_replayed,
    "old payloads under next numbers": flip_renumbered,
    "all of it": lambda random, sight: random.choice(ALONE)(random, sight),
}
ALONE = [forge for name, forge in FORGERIES.items() if name != "all of it"]


@dataclass(frozen=True)
class Outcome:
    """What a siege led to."""

    sent: int
    heard: int
    deaf: float
    """Seconds: the longest that a packet waited, or that packets in a row were lost."""
    homes: list[Address | None]

    @property
    def lost(self) -> float:
        """Part of the device's packets that was not heard."""
        return 1 - self.heard / self.sent


def besiege(
    forge: Forge,
    source: Address,
    seconds: float,
    *,
    rate: float = 500.0,
    pauses: bool = False,
    uplink: AudioFormat = STOCK,
) -> Outcome:
    """Let a device speak while somebody forges.

    Args:
        forge: What is forged.
        source: Where it seems to come from.
        seconds: How long.
        rate: Forged packets a second.
        pauses: Whether the microphone is shut every other 10 s, as while an answer is spoken.
        uplink: What the device sends.
    """
    random, air, frame = Random(1), Air(uplink.frame_ms, uplink.sample_rate), uplink.frame_ms / 1000
    sent, seen, forged = 0, [seal(b"\x58", 0)], 0
    spoken: dict[int, float] = {}
    for tick in range(round(seconds / frame)):
        now = tick * frame
        if not pauses or now % 20 < 10:
            sent += 1
            spoken[sent] = now
            datagram = seal(speech(sent, air.toc), sent)
            seen = [*seen, datagram][-50:]
            air.take(datagram, HOME, now)
        while forged < (tick + 1) * frame * rate:
            air.take(forge(random, Sight(sent, seen)), source, forged / rate)
            forged += 1
    return Outcome(sent, len(set(air.numbers)), _longest_deafness(air, spoken, frame), air.homes)


def _longest_deafness(air: Air, spoken: dict[int, float], frame: float) -> float:
    """Return the longest time for which packets in a row were lost, or for which one waited until it was heard."""
    longest, lost, heard = 0.0, 0, {number: when for when, number in air.heard}
    for number, when in spoken.items():
        lost = 0 if number in heard else lost + 1
        longest = max(longest, lost * frame, heard.get(number, when) - when)
    return longest
