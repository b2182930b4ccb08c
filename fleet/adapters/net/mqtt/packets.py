"""The packets of MQTT 3.1.1 that a client needs (OASIS standard, sections 2 and 3), as pure functions.

QoS 2 and retained messages are left out: nothing in fleet asks a broker for them.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fleet.wire.identity import Credentials

LARGEST = 256 * 1024
"""Largest packet in bytes whose content is kept; a larger message is skipped, so that no device can end a session."""
PINGREQ = b"\xc0\x00"
DISCONNECT = b"\xe0\x00"

_CONNACK, _PUBLISH, _PUBACK, _SUBACK, _PINGRESP = 0x20, 0x30, 0x40, 0x90, 0xD0
_CLEAN, _WILL, _PASSWORD, _USERNAME = 0x02, 0x04, 0x40, 0x80
_SHORT = struct.Struct("!H")
_ACK = struct.Struct("!BBH")


@dataclass(frozen=True, slots=True)
class LastWill:
    """What the broker publishes at QoS 0 when the connection is lost without a DISCONNECT."""

    topic: str
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Connected:
    """CONNACK: `code` 0 is success; `resumed` says that the broker kept a session of this client id."""

    resumed: bool
    code: int


class Incoming(NamedTuple):
    """PUBLISH; `id` is None at QoS 0. `skipped` means that it was too large and `payload` is empty."""

    topic: str
    payload: bytes
    id: int | None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Subscribed:
    """SUBACK: the QoS granted to each filter, 0x80 for a refusal."""

    codes: bytes


@dataclass(frozen=True, slots=True)
class PingResponse:
    """PINGRESP."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The bytes are no MQTT that a client may receive; nothing after them can be read."""

    reason: str


Packet = Connected | Incoming | Subscribed | PingResponse | Broken


def _length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def _text(content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _SHORT.pack(len(data)) + data


def _packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + _length(len(body)) + body


def connect(credentials: Credentials, keepalive: int, *, clean: bool, will: LastWill | None) -> bytes:
    """Return CONNECT; `keepalive` in seconds."""
    flags = _USERNAME | _PASSWORD | (_CLEAN if clean else 0) | (_WILL if will else 0)
    fields: list[str | bytes] = [credentials.client_id]
    if will:
        fields += [will.topic, will.payload]
    fields += [credentials.username, credentials.password]
    head = _text("MQTT") + bytes((4, flags)) + _SHORT.pack(keepalive)
    return _packet(0x10, head + b"".join(map(_text, fields)))


def subscribe(filters: Sequence[str]) -> bytes:
    """Return SUBSCRIBE with packet id 1 for all filters at QoS 1."""
    return _packet(0x82, _SHORT.pack(1) + b"".join(_text(one) + b"\x01" for one in filters))


def publish(topic: str, payload: bytes) -> bytes:
    """Return PUBLISH at QoS 0, not retained."""
    name = topic.encode()
    body = len(name) + 2 + len(payload)
    return b"".join((b"\x30", _length(body), _SHORT.pack(len(name)), name, payload))


def acknowledge(ids: Iterable[int]) -> bytes:
    """Return one PUBACK for each packet id, in this order."""
    return b"".join([_ACK.pack(_PUBACK, 2, one) for one in ids])


class PacketReader:
    """Cuts the bytes from a broker into packets; holds at most one packet of `LARGEST` bytes."""

    __slots__ = ("_rest", "_skip")

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[Packet]:
        """Yield the packets that are now complete; after `Broken` the reader must not be fed again."""
        if self._skip:
            gone = min(self._skip, len(data))
            self._skip -= gone
            data = data[gone:]
        data = self._rest + data
        at, end = 0, len(data)
        while (header := _header(data, at)) is not None:
            start, size = header
            if size < 0:
                yield Broken("a packet's length has more than four bytes")
                return
            if size > LARGEST:
                packet = _oversized(data[at], data[start : start + _LARGEST_HEAD])
                if packet is None:
                    break
                self._skip = max(0, start + size - end)
            elif start + size > end:
                break
            else:
                packet = _parse(data[at], data[start : start + size])
            at = min(start + size, end)
            yield packet
        self._rest = data[at:]


_LARGEST_HEAD = 2 + 0xFFFF + 2


def _header(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the body begins and its length, or None when more bytes are needed; a wrong length is -1."""
    size = shift = 0
    for index in range(at + 1, min(at + 5, len(data))):
        byte = data[index]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return index + 1, size
        shift += 7
    return (at, -1) if len(data) >= at + 5 else None


def _parse(first: int, body: bytes) -> Packet:
    kind = first & 0xF0
    if kind == _PUBLISH:
        return _incoming(first, body) or Broken("PUBLISH is cut short or has QoS 2")
    if kind == _CONNACK and len(body) == 2:
        return Connected(bool(body[0] & 1), body[1])
    if kind == _SUBACK and len(body) > 2:
        return Subscribed(body[2:])
    if kind == _PINGRESP:
        return PingResponse()
    return Broken(f"packet type {first >> 4} is not expected or has a wrong length")


def _incoming(first: int, body: bytes) -> Incoming | None:
    qos = first & 0x06
    if len(body) < 2:
        return None
    name_end = 2 + (body[0] << 8 | body[1])
    start = name_end + 2 if qos else name_end
    if qos > 2 or len(body) < start:
        return None
    # A broker checks topics to be UTF-8; one that does not must not be able to end the session again and again.
    topic = body[2:name_end].decode(errors="replace")
    return Incoming(topic, body[start:], body[name_end] << 8 | body[name_end + 1] if qos else None)


def _oversized(first: int, head: bytes) -> Packet | None:
    """Return the message without its payload, or None when more bytes are needed to know its id."""
    if first & 0xF0 != _PUBLISH or first & 0x04:
        return Broken(f"packet type {first >> 4} is too long or has QoS 2")
    found = _incoming(first, head)
    if found is None:
        return None
    return Incoming(found.topic, b"", found.id, skipped=True)
