"""MQTT control packets, as far as the front reads and writes them: MQTT 3.1 and 3.1.1.

Section numbers are those of the OASIS standard MQTT 3.1.1. Reading never raises: what is no packet is None, and a
stream that breaks the framing ends its `Splitter`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, NamedTuple

LARGEST: Final = 128 * 1024
"""Largest packet in bytes, with its header: the longest tool list of a device is far smaller."""

PINGREQ: Final = b"\xc0\x00"
DISCONNECT: Final = b"\xe0\x00"

REFUSED_VERSION, REFUSED_CLIENT_ID, UNAVAILABLE, BAD_LOGIN, NOT_AUTHORISED = 1, 2, 3, 4, 5
"""Codes of a CONNACK (3.2.2.3)."""
SUBSCRIBE_DENIED: Final = 0x80

_NAMES = {3: "MQIsdp", 4: "MQTT"}
_VERSION_5: Final = 5


class Kind(IntEnum):
    """The packet types (2.2.1)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


class Packet(NamedTuple):
    """One whole packet; `raw[start:]` is what follows the fixed header."""

    kind: int
    flags: int
    start: int
    raw: bytes


class Splitter:
    """Cuts a byte stream into packets; keeps at most one unfinished packet.

    Args:
        largest: Size in bytes, header included, above which a packet ends the stream.
    """

    __slots__ = ("_largest", "_rest", "fault")

    def __init__(self, largest: int = LARGEST) -> None:
        self._rest = bytearray()
        self._largest = largest
        self.fault: Literal["", "oversize", "malformed"] = ""
        """Why the stream ended; after that nothing more comes out of it."""

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that are whole now."""
        if self.fault:
            return []
        rest = self._rest
        rest += data
        packets: list[Packet] = []
        at = 0
        while (bounds := _bounds(rest, at)) is not None:
            start, end = bounds
            if start < 0 or end - at > self._largest:
                self.fault = "malformed" if start < 0 else "oversize"
                rest.clear()
                return packets
            if end > len(rest):
                break
            packets.append(Packet(rest[at] >> 4, rest[at] & 0x0F, start - at, bytes(rest[at:end])))
            at = end
        del rest[:at]
        return packets


def _bounds(data: bytearray, at: int) -> tuple[int, int] | None:
    """Return where the body of the packet at `at` starts and ends, None when unknown yet, (-1, -1) when malformed."""
    length = 0
    for place in range(4):  # the length has at most four digits of seven bits (2.2.3)
        index = at + 1 + place
        if index >= len(data):
            return None
        length |= (data[index] & 0x7F) << 7 * place
        if data[index] < 0x80:
            return index + 1, index + 1 + length
    return -1, -1


class _Fields:
    """Reads the fields of a packet's body in turn; raises ValueError when there is not enough of it."""

    def __init__(self, packet: Packet) -> None:
        self._raw = packet.raw
        self._at = packet.start

    def left(self) -> bool:
        return self._at < len(self._raw)

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._raw):
            raise ValueError("short packet")
        part, self._at = self._raw[self._at : end], end
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def data(self) -> bytes:
        return self.take(self.number(2))

    def text(self) -> str:
        return self.data().decode()


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker is to publish when the connection ends without DISCONNECT."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


@dataclass(frozen=True, slots=True)
class Connect:
    """A client's CONNECT (3.1); `keepalive` is in seconds, 0 for none; level 3 is MQTT 3.1, 4 is MQTT 3.1.1."""

    client_id: str
    username: str | None = None
    password: str | None = None
    keepalive: int = 0
    will: Will | None = None
    clean: bool = True
    level: int = 4


def parse_connect(packet: Packet) -> Connect | int | None:
    """Return the CONNECT, its protocol level alone when that is not 3 or 4, or None when it is malformed."""
    fields = _Fields(packet)
    try:
        name, level = fields.text(), fields.number(1)
        if name != _NAMES.get(level):
            return level if name == "MQTT" and level not in _NAMES else None
        return _connect(fields, level)
    except ValueError:
        return None


def _connect(fields: _Fields, level: int) -> Connect | None:
    flags, keepalive, client_id = fields.number(1), fields.number(2), fields.text()
    qos, named, secret = flags >> 3 & 3, bool(flags & 0x80), bool(flags & 0x40)
    has_will = bool(flags & 0x04)
    if flags & 0x01 or qos > 2 or (secret and not named) or (flags & 0x38 and not has_will):  # 3.1.2.3 to 3.1.2.9
        return None
    will = Will(fields.text(), fields.data(), qos, bool(flags & 0x20)) if has_will else None
    username = fields.text() if named else None
    password = fields.text() if secret else None
    if fields.left():
        return None
    return Connect(client_id, username, password, keepalive, will, clean=bool(flags & 0x02), level=level)


class Publish(NamedTuple):
    """The head of a PUBLISH; `packet_id` is 0 at QoS 0."""

    topic: bytes
    qos: int
    retain: bool
    packet_id: int
    payload: bytes


def parse_publish(packet: Packet) -> Publish | None:
    fields, qos = _Fields(packet), packet.flags >> 1 & 3
    try:
        topic = fields.data()
        packet_id = fields.number(2) if qos else 0
    except ValueError:
        return None
    if qos > 2 or (qos and not packet_id):
        return None
    payload = packet.raw[packet.start + 2 + len(topic) + (2 if qos else 0) :]
    return Publish(topic, qos, bool(packet.flags & 1), packet_id, payload)


def parse_subscribe(packet: Packet) -> tuple[int, list[tuple[str, int]]] | None:
    """Return the packet id and the (filter, QoS) pairs, at least one, or None when malformed."""
    fields, wanted = _Fields(packet), list[tuple[str, int]]()
    try:
        number = fields.number(2)
        while fields.left():
            wanted.append((fields.text(), fields.number(1)))
    except ValueError:
        return None
    return (number, wanted) if number and wanted and all(qos <= 2 for _, qos in wanted) else None


def parse_suback(packet: Packet) -> tuple[int, bytes] | None:
    """Return the packet id and one code per filter, or None when malformed."""
    number = parse_id(packet)
    return (number, packet.raw[packet.start + 2 :]) if number else None


def parse_connack(packet: Packet) -> int | None:
    """Return the code, or None when malformed."""
    return packet.raw[packet.start + 1] if len(packet.raw) == packet.start + 2 else None


def parse_id(packet: Packet) -> int:
    """Return the packet id with which every acknowledgement, SUBSCRIBE and UNSUBSCRIBE begins; 0 is none."""
    return int.from_bytes(packet.raw[packet.start : packet.start + 2])


def frame(kind: Kind, flags: int, body: bytes) -> bytes:
    """Return a whole packet; the body is shorter than 256 MB."""
    head, left = bytearray((kind << 4 | flags,)), len(body)
    while left > 0x7F:
        head.append(left & 0x7F | 0x80)
        left >>= 7
    head.append(left)
    return bytes(head) + body


def _text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return len(raw).to_bytes(2) + raw


def connect(order: Connect) -> bytes:
    """Build a CONNECT; a password needs a user name."""
    flags, will = 0x02 * order.clean, order.will
    tail = _text(order.client_id)
    if will is not None:
        flags |= 0x04 | will.qos << 3 | 0x20 * will.retain
        tail += _text(will.topic) + _text(will.payload)
    if order.username is not None:
        flags |= 0x80
        tail += _text(order.username)
    if order.password is not None:
        flags |= 0x40
        tail += _text(order.password)
    head = _text(_NAMES[order.level]) + bytes((order.level, flags)) + order.keepalive.to_bytes(2)
    return frame(Kind.CONNECT, 0, head + tail)


def connack(code: int) -> bytes:
    """Build a CONNACK that says that no session was kept."""
    return frame(Kind.CONNACK, 0, bytes((0, code)))


def refuse_version(level: int) -> bytes:
    """Build the CONNACK for a protocol level that is not spoken, in the form that a client of that level can read."""
    if level == _VERSION_5:
        return frame(Kind.CONNACK, 0, b"\x00\x84\x00")  # MQTT 5, 3.2.2.2: unsupported protocol version, no properties
    return connack(REFUSED_VERSION)


def publish(topic: str | bytes, payload: bytes, qos: int = 0, packet_id: int = 0) -> bytes:
    """Build a PUBLISH that is not retained; a QoS above 0 needs a packet id."""
    return frame(Kind.PUBLISH, qos << 1, _text(topic) + (packet_id.to_bytes(2) if qos else b"") + payload)


def acknowledge(kind: Kind, packet_id: int) -> bytes:
    """Build a PUBACK, PUBREC, PUBCOMP or UNSUBACK."""
    return frame(kind, 0, packet_id.to_bytes(2))


def subscribe(packet_id: int, topic: str, qos: int) -> bytes:
    return frame(Kind.SUBSCRIBE, 0x02, packet_id.to_bytes(2) + _text(topic) + bytes((qos,)))


def suback(packet_id: int, codes: bytes) -> bytes:
    return frame(Kind.SUBACK, 0, packet_id.to_bytes(2) + codes)
