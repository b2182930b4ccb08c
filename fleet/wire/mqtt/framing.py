"""Cutting a byte stream into MQTT control packets, and building their fixed header.

Section numbers are those of the OASIS standard MQTT 3.1.1. Nothing here raises: a stream that breaks the framing ends
its `Splitter`.
"""

from enum import IntEnum
from typing import Final, Literal, NamedTuple

LARGEST_OF_DEVICE: Final = 128 * 1024
"""Largest packet in bytes, with its header, between a device and the front: the longest tool list of a device is far
smaller."""

_LONGEST_LENGTH: Final = 4
"""Bytes of the remaining length (2.2.3)."""
_QOS_2: Final = 0x04
_IDENTIFIED: Final = 0x06
"""Flags of a PUBLISH: it carries a packet id if one of these bits is set."""


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


SKIPPED: Final = 0x10
"""Extra flag of a PUBLISH of which only the head was kept."""
_PUBLISH: Final = int(Kind.PUBLISH)


class Packet(NamedTuple):
    """One packet; `raw[start:]` is what follows the fixed header; `flags` are its four, and `SKIPPED`."""

    kind: int
    flags: int
    start: int
    raw: bytes


class Splitter:
    """Cuts a byte stream into packets; keeps at most one unfinished packet.

    A packet that arrives in a chunk of its own is not copied; one that arrives in pieces is copied once, when it is
    whole.

    Args:
        largest: Size in bytes, header included, above which a packet is too large.
        skip_larger: Whether a PUBLISH that is too large is cut down to its head instead of ending the stream.
    """

    __slots__ = ("_needed", "_rest", "_skip_larger", "_to_skip", "fault", "largest")

    def __init__(self, largest: int = LARGEST_OF_DEVICE, *, skip_larger: bool = False) -> None:
        self.largest = largest
        self._skip_larger = skip_larger
        self._rest = bytearray()
        self._needed = 0
        """Bytes that `_rest` must have before it is parsed again."""
        self._to_skip = 0
        """Bytes of a skipped packet that are still to come."""
        self.fault: Literal["", "oversize", "malformed"] = ""
        """Why the stream ended; no packet follows."""

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that are now complete."""
        if self.fault:
            return []
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        return self._split(data)

    def _split(self, data: bytes) -> list[Packet]:
        packets: list[Packet] = []
        at, size = 0, len(data)
        while at < size:
            start, end = _bounds(data, at)
            if end == 0:
                self._wait(data, at, size - at + 1)
                break
            if start == 0:
                self.fault = "malformed"
                break
            if end - at > self.largest:
                packet = self._oversized(data, at, start, end)
                if packet is None:
                    break
                self._to_skip = max(0, end - size)
            elif end > size:
                self._wait(data, at, end - at)
                break
            else:
                first = data[at]
                packet = Packet(first >> 4, first & 0x0F, start - at, data[at:end])
            packets.append(packet)
            at = end
        return packets

    def _oversized(self, data: bytes, at: int, start: int, end: int) -> Packet | None:
        """Return the head of a PUBLISH that is too large, or None if it is incomplete or must not be skipped."""
        kind, flags = data[at] >> 4, data[at] & 0x0F
        if not self._skip_larger or kind != _PUBLISH or flags & _QOS_2:
            self.fault = "oversize"
            return None
        topic_at = start + 2
        head_end = topic_at + int.from_bytes(data[start:topic_at]) + (2 if flags & _IDENTIFIED else 0)
        if len(data) < max(topic_at, head_end):
            self._wait(data, at, max(topic_at, head_end) - at)
            return None
        return Packet(kind, flags | SKIPPED, start - at, data[at:head_end])

    def _wait(self, data: bytes, at: int, needed: int) -> None:
        """Keep the unfinished packet that begins at `at` until `needed` bytes of it have arrived."""
        self._rest += data[at:] if at else data
        self._needed = needed


def _bounds(data: bytes, at: int) -> tuple[int, int]:
    """Return where the body of the packet at `at` starts and ends.

    The end is 0 if more bytes are needed to know it, the start is 0 if the length has too many digits.
    """
    if len(data) > at + 2:  # nearly all packets are shorter than 16 KB
        low, high = data[at + 1], data[at + 2]
        if low < 0x80:
            return at + 2, at + 2 + low
        if high < 0x80:
            return at + 3, at + 3 + (low & 0x7F | high << 7)
    length = shift = 0
    for index in range(at + 1, min(at + 1 + _LONGEST_LENGTH, len(data))):
        digit = data[index]
        if digit < 0x80:
            return index + 1, index + 1 + (length | digit << shift)
        length |= (digit & 0x7F) << shift
        shift += 7
    return 0, -1 if len(data) > at + _LONGEST_LENGTH else 0


def fixed_header(kind: int, flags: int, size: int) -> bytes:
    """Return the fixed header before a body of `size` bytes, which is less than 256 MB."""
    first = kind << 4 | flags
    if size < 0x80:
        return bytes((first, size))
    if size < 0x4000:
        return bytes((first, size & 0x7F | 0x80, size >> 7))
    header = bytearray((first,))
    while size > 0x7F:
        header.append(size & 0x7F | 0x80)
        size >>= 7
    header.append(size)
    return bytes(header)


def frame(kind: int, flags: int, body: bytes) -> bytes:
    """Return a whole packet; the body is shorter than 256 MB."""
    return fixed_header(kind, flags, len(body)) + body
