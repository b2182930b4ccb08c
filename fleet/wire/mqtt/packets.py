"""MQTT control packets of both ends: MQTT 3.1 and 3.1.1.

Section numbers are those of the OASIS standard MQTT 3.1.1. Parsing never raises: a malformed packet becomes None.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fleet.wire.identity import Credentials
from fleet.wire.mqtt.framing import SKIPPED, Kind, Packet, fixed_header, frame

PINGREQ: Final = b"\xc0\x00"
DISCONNECT: Final = b"\xe0\x00"

REFUSED_VERSION, REFUSED_CLIENT_ID, UNAVAILABLE, BAD_LOGIN, NOT_AUTHORISED = 1, 2, 3, 4, 5
"""Codes of a CONNACK (3.2.2.3)."""
SUBSCRIBE_DENIED: Final = 0x80

_NAMES = {3: "MQIsdp", 4: "MQTT"}
_VERSION_5: Final = 5
_SHORT: Final = struct.Struct("!H")
_ACKNOWLEDGEMENT: Final = struct.Struct("!BBH")
_PUBLISH: Final = int(Kind.PUBLISH)
_PUBACK: Final = Kind.PUBACK << 4


class _Fields:
    """Reads the fields of a packet's body one after the other; raises ValueError at a missing field."""

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
    """The message that the broker publishes when the connection ends without DISCONNECT."""

    topic: str
    payload: bytes = b""
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

    @classmethod
    def of(cls, credentials: Credentials, keepalive: int, *, will: Will | None = None, clean: bool = True) -> "Connect":
        """Return the CONNECT of credentials; an empty user name, or password, is left out."""
        username, password = credentials.username or None, credentials.password or None
        return cls(credentials.client_id, username, password, keepalive, will, clean)


def parse_connect(packet: Packet) -> Connect | int | None:
    """Return the CONNECT, only its protocol level if that is not 3 or 4, or None if it is malformed."""
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
    """A PUBLISH; `packet_id` is 0 at QoS 0, `flags` are those of the fixed header (3.3.1)."""

    topic: str
    payload: bytes
    packet_id: int = 0
    flags: int = 0

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.flags & 1)

    @property
    def skipped(self) -> bool:
        """Whether it was too large for its `Splitter`, which kept its head only: the payload is empty."""
        return bool(self.flags & SKIPPED)


def parse_publish(packet: Packet) -> Publish | None:
    """Return the message; invalid UTF-8 in a topic becomes replacement characters, so that it matches no real topic."""
    _, flags, start, raw = packet
    if len(raw) < start + 2:
        return None
    topic_end = start + 2 + (raw[start] << 8 | raw[start + 1])
    topic = raw[start + 2 : topic_end].decode(errors="replace")
    if not flags & 0x06:
        return Publish(topic, raw[topic_end:], 0, flags) if len(raw) >= topic_end else None
    if len(raw) < topic_end + 2 or flags & 0x06 == 0x06:
        return None
    packet_id = raw[topic_end] << 8 | raw[topic_end + 1]
    return Publish(topic, raw[topic_end + 2 :], packet_id, flags) if packet_id else None


def parse_subscribe(packet: Packet) -> tuple[int, list[tuple[str, int]]] | None:
    """Return the packet id and the (filter, QoS) pairs, at least one, or None if it is malformed."""
    fields, wanted = _Fields(packet), list[tuple[str, int]]()
    try:
        number = fields.number(2)
        while fields.left():
            wanted.append((fields.text(), fields.number(1)))
    except ValueError:
        return None
    return (number, wanted) if number and wanted and all(qos <= 2 for _, qos in wanted) else None


class Suback(NamedTuple):
    """A SUBACK: the QoS granted to each filter, `SUBSCRIBE_DENIED` for a refusal."""

    packet_id: int
    codes: bytes


def parse_suback(packet: Packet) -> Suback | None:
    packet_id = parse_id(packet)
    codes = packet.raw[packet.start + 2 :]
    return Suback(packet_id, codes) if packet_id and codes else None


class Connack(NamedTuple):
    """A CONNACK: `code` 0 is success; `resumed`: the broker kept a session of this client id."""

    resumed: bool
    code: int


def parse_connack(packet: Packet) -> Connack | None:
    body = packet.raw[packet.start :]
    return Connack(bool(body[0] & 1), body[1]) if len(body) == 2 else None


def parse_id(packet: Packet) -> int:
    """Return the packet id with which every acknowledgement, SUBSCRIBE and UNSUBSCRIBE begins; 0 is none."""
    return int.from_bytes(packet.raw[packet.start : packet.start + 2])


def _text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _SHORT.pack(len(raw)) + raw


def connect(wish: Connect) -> bytes:
    """Build a CONNECT; a password needs a user name."""
    flags, will = 0x02 * wish.clean, wish.will
    tail = _text(wish.client_id)
    if will is not None:
        flags |= 0x04 | will.qos << 3 | 0x20 * will.retain
        tail += _text(will.topic) + _text(will.payload)
    if wish.username is not None:
        flags |= 0x80
        tail += _text(wish.username)
    if wish.password is not None:
        flags |= 0x40
        tail += _text(wish.password)
    head = _text(_NAMES[wish.level]) + bytes((wish.level, flags)) + wish.keepalive.to_bytes(2)
    return frame(Kind.CONNECT, 0, head + tail)


def connack(code: int) -> bytes:
    """Build a CONNACK without a resumed session."""
    return frame(Kind.CONNACK, 0, bytes((0, code)))


def refuse_version(level: int) -> bytes:
    """Build the CONNACK for an unsupported protocol level, in the form of that level."""
    if level == _VERSION_5:
        return frame(Kind.CONNACK, 0, b"\x00\x84\x00")  # MQTT 5, 3.2.2.2: unsupported protocol version, no properties
    return connack(REFUSED_VERSION)


def publish(topic: str, payload: bytes, qos: int = 0, packet_id: int = 0) -> bytes:
    """Build a PUBLISH that is not retained; a QoS above 0 needs a packet id."""
    name = topic.encode()
    size = 2 + len(name) + len(payload)
    length = _SHORT.pack(len(name))
    if qos:
        header = fixed_header(_PUBLISH, qos << 1, size + 2)
        return b"".join((header, length, name, _SHORT.pack(packet_id), payload))
    return b"".join((fixed_header(_PUBLISH, 0, size), length, name, payload))


def acknowledge(kind: Kind, packet_id: int) -> bytes:
    """Build a PUBACK, PUBREC, PUBCOMP or UNSUBACK."""
    return frame(kind, 0, _SHORT.pack(packet_id))


def pubacks(packet_ids: Iterable[int]) -> bytes:
    """Build one PUBACK for each packet id, in this order."""
    return b"".join([_ACKNOWLEDGEMENT.pack(_PUBACK, 2, packet_id) for packet_id in packet_ids])


def subscribe(filters: Sequence[str], qos: int = 1, packet_id: int = 1) -> bytes:
    """Build a SUBSCRIBE for all filters at one QoS."""
    wanted = b"".join(_text(one) + bytes((qos,)) for one in filters)
    return frame(Kind.SUBSCRIBE, 0x02, _SHORT.pack(packet_id) + wanted)


def suback(packet_id: int, codes: bytes) -> bytes:
    return frame(Kind.SUBACK, 0, _SHORT.pack(packet_id) + codes)
