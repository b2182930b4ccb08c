"""Reads the packets of MQTT 3.1.1 that a broker sends to a client, without QoS 2."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fleet.wire.mqtt.framing import Kind, Packet, Splitter
from fleet.wire.mqtt.packets import Connack, Publish, Suback, parse_connack, parse_id, parse_publish, parse_suback

LARGEST_OF_BROKER: Final = 256 * 1024
"""Bytes of the largest packet whose content is kept. A larger message is skipped, so that no device can end the shard's
session by sending one."""

_PUBLISH: Final = int(Kind.PUBLISH)
_FAULTS: Final = {
    "malformed": "a packet's length has more than four bytes",
    "oversize": "a packet that is too long is no message, or has QoS 2",
}


@dataclass(frozen=True, slots=True)
class Puback:
    """The broker has accepted the PUBLISH at QoS 1 with this packet id."""

    packet_id: int


@dataclass(frozen=True, slots=True)
class Pingresp:
    """The answer to PINGREQ."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream violates the protocol for a client; nothing after it can be read."""

    reason: str


FromBroker = Connack | Publish | Suback | Puback | Pingresp | Broken


class BrokerReader:
    """Reads the bytes from a broker; holds at most one packet of `LARGEST_OF_BROKER` bytes."""

    __slots__ = ("_splitter",)

    def __init__(self) -> None:
        self._splitter = Splitter(LARGEST_OF_BROKER, skip_larger=True)

    def feed(self, data: bytes) -> Iterator[FromBroker]:
        """Yield the packets that are now complete; after `Broken` the reader must not be fed again."""
        for packet in self._splitter.feed(data):
            found = parse_publish(packet) if packet.kind == _PUBLISH else _parse(packet)
            if found is None or (packet.kind == _PUBLISH and packet.flags & 0x04):
                yield Broken(f"packet type {packet.kind} is not expected, malformed, or has QoS 2")
                return
            yield found
        if self._splitter.fault:
            yield Broken(_FAULTS[self._splitter.fault])


def _parse(packet: Packet) -> FromBroker | None:
    match packet.kind:
        case Kind.CONNACK:
            return parse_connack(packet)
        case Kind.SUBACK:
            return parse_suback(packet)
        case Kind.PUBACK:
            packet_id = parse_id(packet)
            return Puback(packet_id) if packet_id and len(packet.raw) == packet.start + 2 else None
        case Kind.PINGRESP:
            return Pingresp()
        case _:
            return None
