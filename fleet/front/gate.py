"""What passes between one device and the broker, decided without IO.

The device's messages go to its own up topic and nowhere else. The front subscribes in the device's place, before the
device hears that it is connected, and answers the device's own SUBSCRIBE itself: so everything arrives, and once. The
subscription has QoS 0: a tool call must not act twice, and nothing waits in the broker for a device that is away.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from fleet.front.admission import Admitted
from fleet.wire import mqtt_packet as mqtt
from fleet.wire.identity import Credentials
from fleet.wire.mqtt_packet import Kind
from fleet.wire.topics import down_topic, presence_topic, up_topic

_SUBSCRIPTION: Final = 1
"""Packet id of the front's SUBSCRIBE; free again before the device's first packet passes."""
_MOST_REFUSED: Final = 64
"""QoS 2 messages that may be between their refusal and their PUBREL."""


@dataclass(slots=True)
class Step:
    """What to write now; `end` is the reason to end the connection, empty while it goes on."""

    to_device: bytes = b""
    to_broker: bytes = b""
    end: str = ""


class Gate:
    """One device's connection from its admission to its end.

    Args:
        device: Who was let in.
        counts: Counts what is dropped.
        affords: Says whether the device may send one more message of so many bytes now.
    """

    def __init__(self, device: Admitted, counts: Counter[str], affords: Callable[[int], bool] = lambda _: True) -> None:
        self._device = device
        self._counts = counts
        self._affords = affords
        self._up = up_topic(device.mac).encode()
        self._down = down_topic(device.mac)
        self._from_broker = mqtt.Splitter()
        self._refused: set[int] = set()
        self._left = False
        self.state: Literal["connecting", "subscribing", "open"] = "connecting"

    @property
    def keepalive(self) -> int:
        """The device's, in seconds; 0 is none."""
        return self._device.keepalive

    def introduce(self, absence: bytes, login: Credentials | None) -> bytes:
        """Return the CONNECT for the broker.

        Always a clean session: nothing of a device stays behind in the broker.

        Args:
            absence: Presence message that the broker publishes should the front die.
            login: User name and password of the front; the client id stays the device's.
        """
        will = mqtt.Will(presence_topic(self._device.mac), absence, qos=1)
        name, password = (login.username, login.password) if login else (None, None)
        return mqtt.connect(mqtt.Connect(self._device.mac, name, password, self._device.keepalive, will))

    def from_broker(self, data: bytes) -> Step:
        """Take bytes from the broker."""
        step = Step()
        for packet in self._from_broker.feed(data):
            if self.state == "open":
                step.to_device += packet.raw
            else:
                self._prepare(packet, step)
        if self._from_broker.fault:
            step.end = step.end or f"broker {self._from_broker.fault}"
        return step

    def from_device(self, packet: mqtt.Packet, step: Step) -> None:
        """Take one packet of the device's, of an open gate; write the effect into `step`."""
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
                # Nothing above QoS 0 is delivered; some brokers close a connection for an unknown packet id.
                self._counts["stray acknowledgement"] += 1
            case Kind.DISCONNECT:
                self._left = True
                step.end = "left"
            case _:
                step.end = "protocol"

    def farewell(self) -> bytes:
        """Return what the broker is told at the end: the device's last message unless it said goodbye, DISCONNECT."""
        if self.state != "open":
            return mqtt.DISCONNECT if self.state == "subscribing" else b""
        return (b"" if self._left else self._device.will) + mqtt.DISCONNECT

    def _prepare(self, packet: mqtt.Packet, step: Step) -> None:
        if self.state == "connecting" and packet.kind == Kind.CONNACK and mqtt.parse_connack(packet) == 0:
            self.state = "subscribing"
            step.to_broker += mqtt.subscribe(_SUBSCRIPTION, self._down, 0)
        elif self.state == "subscribing" and packet.kind == Kind.SUBACK:
            self._open(mqtt.parse_suback(packet), step)
        elif self.state == "subscribing" and packet.kind == Kind.PUBLISH:
            self._counts["early"] += 1  # allowed before the SUBACK (3.8.4), of no use before the CONNACK
        else:
            step.end = "broker refused"

    def _open(self, granted: tuple[int, bytes] | None, step: Step) -> None:
        if granted != (_SUBSCRIPTION, b"\0"):
            step.end = "broker refused"
            return
        self.state = "open"
        step.to_device += mqtt.connack(0)

    def _publish(self, packet: mqtt.Packet, step: Step) -> None:
        head = mqtt.parse_publish(packet)
        if head is None:
            step.end = "malformed"
        elif head.topic != self._up or head.retain:
            self._drop(head, step, "foreign topic")
        elif not self._affords(len(packet.raw)):
            self._drop(head, step, "flood")
        else:
            step.to_broker += packet.raw

    def _drop(self, head: mqtt.Publish, step: Step, reason: str) -> None:
        """Drop a message as MQTT 3.1.1 has it: acknowledged, for there is no way to refuse one (3.3.5)."""
        self._counts[reason] += 1
        if head.qos == 1:
            step.to_device += mqtt.acknowledge(Kind.PUBACK, head.packet_id)
        elif head.qos == 2:
            self._refused.add(head.packet_id)
            step.to_device += mqtt.acknowledge(Kind.PUBREC, head.packet_id)
            if len(self._refused) > _MOST_REFUSED:
                step.end = "protocol"

    def _release(self, packet: mqtt.Packet, step: Step) -> None:
        number = mqtt.parse_id(packet)
        if number in self._refused:
            self._refused.discard(number)
            step.to_device += mqtt.acknowledge(Kind.PUBCOMP, number)
        else:
            step.to_broker += packet.raw

    def _subscribe(self, packet: mqtt.Packet, step: Step) -> None:
        wish = mqtt.parse_subscribe(packet)
        if wish is None:
            step.end = "malformed"
            return
        number, wanted = wish
        codes = bytes(0 if topic == self._down else mqtt.SUBSCRIBE_DENIED for topic, _ in wanted)
        self._counts["foreign filter"] += codes.count(mqtt.SUBSCRIBE_DENIED)
        step.to_device += mqtt.suback(number, codes)
