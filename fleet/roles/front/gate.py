"""Decide which packets pass between one device and the broker, without IO.

The device may publish on its own up topic only. The front subscribes for the device before it sends the device its
CONNACK, and answers the device's own SUBSCRIBE itself. So each message arrives, and once. The subscription has QoS 0: a
tool call must not run twice, and the broker must keep nothing for a device that is offline.

The presence `online` is published on the same connection, and the device gets its CONNACK after the broker has
acknowledged it. So no frame of the device reaches the broker before its presence (docs/adr/0021).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from fleet.roles.front.connect_check import Admitted
from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Kind, Packet, Splitter
from fleet.wire.topics import down_topic, presence_topic, up_topic

_SUBSCRIPTION: Final = 1
_PRESENCE: Final = 2
_ABSENCE: Final = 3
"""Packet ids of the front's SUBSCRIBE and messages; they are free before the device's first packet passes."""
_MOST_EARLY: Final = 8 * 1024
"""Bytes of messages that may wait for the device's CONNACK; messages for stock firmware have at most 1 KB."""
_MOST_REFUSED: Final = 64
"""QoS 2 messages that may be between their refusal and their PUBREL."""


@dataclass(slots=True)
class GateStep:
    """The bytes to write now; `end` is the reason to end the connection, else empty."""

    to_device: bytearray = field(default_factory=bytearray)
    to_broker: bytearray = field(default_factory=bytearray)
    end: str = ""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The presence messages for the begin and end of a device's connection, with the same epoch."""

    online: bytes
    offline: bytes


_SILENCE: Final = Announcement(b"", b"")
_ACKNOWLEDGEMENTS: Final = frozenset[int]({Kind.SUBACK, Kind.PUBACK})
_NONE: Final = frozenset[int]()
"""Idle devices share it: an empty set takes 216 bytes."""


class FrontGate:
    """One device's connection from its admission to its end.

    Args:
        device: The admitted device.
        counts: Count dropped messages.
        allows: Returns whether the device may send one more message of this number of bytes now.
    """

    def __init__(self, device: Admitted, counts: Counter[str], allows: Callable[[int], bool] = lambda _: True) -> None:
        self._device = device
        self._counts = counts
        self._allows = allows
        self._up = up_topic(device.mac)
        self._down = down_topic(device.mac)
        self._from_broker = Splitter()
        self._refused = _NONE
        self._disconnected = False
        self._presence = _SILENCE
        self._awaited = _ACKNOWLEDGEMENTS
        self._early = b""
        self.state: Literal["connecting", "announcing", "open"] = "connecting"

    @property
    def keepalive(self) -> int:
        """The keep-alive of the device in seconds; 0 for none."""
        return self._device.keepalive

    @property
    def announced(self) -> bool:
        """Whether the presence `online` may have reached the broker."""
        return self.state != "connecting"

    def connect_packet(self, presence: Announcement, login: Credentials | None) -> bytes:
        """Return the CONNECT for the broker.

        It is a clean session, so that the broker keeps nothing of a device.

        Args:
            presence: The device's presence; its `offline` is the Will, for a crash of the front.
            login: User name and password of the front; the client id is the device's.
        """
        self._presence = presence
        will = mqtt.Will(presence_topic(self._device.mac), presence.offline, qos=1)
        name, password = (login.username, login.password) if login else (None, None)
        return mqtt.connect(mqtt.Connect(self._device.mac, name, password, self._device.keepalive, will))

    def from_broker(self, data: bytes) -> GateStep:
        """Take bytes from the broker."""
        step = GateStep()
        for packet in self._from_broker.feed(data):
            if self.state == "open":
                step.to_device += packet.raw
            else:
                self._prepare(packet, step)
        if self._from_broker.fault:
            step.end = step.end or f"broker {self._from_broker.fault}"
        return step

    def from_device(self, packet: Packet, step: GateStep) -> None:
        """Take one packet of the device when the gate is open; add the effect to `step`."""
        match packet.kind:
            case Kind.PUBLISH:
                self._publish(packet, step)
            case Kind.PINGREQ:
                step.to_broker += packet.raw
            case Kind.SUBSCRIBE:
                self._subscribe(packet, step)
            case Kind.UNSUBSCRIBE:
                step.to_device += mqtt.acknowledge(Kind.UNSUBACK, mqtt.parse_id(packet))
            case Kind.PUBREL:
                self._release(packet, step)
            case Kind.PUBACK | Kind.PUBREC | Kind.PUBCOMP:
                # Messages for the device have QoS 0, so nothing can be acknowledged. Some brokers close a connection
                # on an unknown packet id.
                self._counts["stray acknowledgement"] += 1
            case Kind.DISCONNECT:
                self._disconnected = True
                step.end = "left"
            case _:
                step.end = "protocol"

    def closing_packets(self) -> bytes:
        """Return the last packets for the broker: the device's Will unless it sent DISCONNECT, then DISCONNECT.

        If the broker has not acknowledged `online` yet, it may process it after messages of other connections.
        Therefore `offline` follows on the same connection.
        """
        if self.state == "connecting":
            return b""
        if self.state == "announcing":
            return _announce(self._device.mac, self._presence.offline, _ABSENCE) + mqtt.DISCONNECT
        return (b"" if self._disconnected else self._device.will) + mqtt.DISCONNECT

    def _prepare(self, packet: Packet, step: GateStep) -> None:
        if self.state == "connecting" and packet.kind == Kind.CONNACK and _accepts(packet):
            self.state = "announcing"
            # Subscribe first: a worker answers the presence, and the device must get the answer.
            step.to_broker += mqtt.subscribe([self._down], 0, _SUBSCRIPTION)
            step.to_broker += _announce(self._device.mac, self._presence.online, _PRESENCE)
        elif self.state == "announcing" and packet.kind == Kind.PUBLISH:
            self._keep(packet.raw)
        elif self.state == "announcing" and self._grants(packet):
            self._awaited -= {packet.kind}
            if not self._awaited:
                self._open(step)
        else:
            step.end = "broker refused"

    def _grants(self, packet: Packet) -> bool:
        if packet.kind == Kind.SUBACK:
            return mqtt.parse_suback(packet) == (_SUBSCRIPTION, b"\0")
        return packet.kind == Kind.PUBACK and mqtt.parse_id(packet) == _PRESENCE

    def _keep(self, message: bytes) -> None:
        """Keep a message until the device has its CONNACK, which must be its first packet."""
        if len(self._early) + len(message) > _MOST_EARLY:
            self._counts["early"] += 1
        else:
            self._early += message

    def _open(self, step: GateStep) -> None:
        self.state = "open"
        step.to_device += mqtt.connack(0) + self._early
        self._early, self._presence = b"", _SILENCE

    def _publish(self, packet: Packet, step: GateStep) -> None:
        head = mqtt.parse_publish(packet)
        if head is None:
            step.end = "malformed"
        elif head.topic != self._up or head.retain:
            self._drop(head, step, "foreign topic")
        elif not self._allows(len(packet.raw)):
            self._drop(head, step, "flood")
        else:
            step.to_broker += packet.raw

    def _drop(self, head: mqtt.Publish, step: GateStep, reason: str) -> None:
        """Drop a message, but acknowledge it: MQTT 3.1.1 has no way to refuse one (3.3.5)."""
        self._counts[reason] += 1
        if head.qos == 1:
            step.to_device += mqtt.acknowledge(Kind.PUBACK, head.packet_id)
        elif head.qos == 2:
            self._refused |= {head.packet_id}
            step.to_device += mqtt.acknowledge(Kind.PUBREC, head.packet_id)
            if len(self._refused) > _MOST_REFUSED:
                step.end = "protocol"

    def _release(self, packet: Packet, step: GateStep) -> None:
        number = mqtt.parse_id(packet)
        if number in self._refused:
            self._refused -= {number}
            step.to_device += mqtt.acknowledge(Kind.PUBCOMP, number)
        else:
            step.to_broker += packet.raw

    def _subscribe(self, packet: Packet, step: GateStep) -> None:
        request = mqtt.parse_subscribe(packet)
        if request is None:
            step.end = "malformed"
            return
        number, wanted = request
        codes = bytes(0 if topic == self._down else mqtt.SUBSCRIBE_DENIED for topic, _ in wanted)
        self._counts["foreign filter"] += codes.count(mqtt.SUBSCRIBE_DENIED)
        step.to_device += mqtt.suback(number, codes)


def _accepts(packet: Packet) -> bool:
    answer = mqtt.parse_connack(packet)
    return answer is not None and answer.code == 0


def _announce(mac: str, message: bytes, packet_id: int) -> bytes:
    return mqtt.publish(presence_topic(mac), message, 1, packet_id)
