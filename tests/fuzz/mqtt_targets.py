"""MQTT, as the front reads it from anybody and the client from a broker."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from fleet.roles.front.connect_check import Admitted, admit
from fleet.roles.front.gate import Announcement, FrontGate, GateStep
from fleet.wire.identity import CredentialKeys, Credentials
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import LARGEST_OF_DEVICE, Kind, Packet, Splitter, fixed_header, frame
from fleet.wire.mqtt.reader import LARGEST_OF_BROKER, Broken, BrokerReader, FromBroker
from fleet.wire.topics import down_topic, up_topic
from tests.fuzz import damage
from tests.fuzz.target import Target

_MAC = "24:0a:c4:12:34:56"
_KEYS = CredentialKeys("k1:0123456789abcdef")
_LOGIN = _KEYS.issue("device", _MAC)
_UP, _DOWN = up_topic(_MAC), down_topic(_MAC)
_NEWS = Announcement(b'{"online":true,"epoch":1}', b'{"online":false,"epoch":1}')


def _connect(will: mqtt.Will | None = None, level: int = 4) -> bytes:
    return mqtt.connect(mqtt.Connect(_MAC, _LOGIN.username, _LOGIN.password, 60, will, level=level))


_FROM_DEVICE = (
    _connect(),
    _connect(mqtt.Will(_UP, b"gone", 1), level=3),
    b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00",
    mqtt.publish(_UP, b'{"type":"hello"}'),
    mqtt.publish(_UP, b"x" * 300, 1, 7),
    mqtt.publish("fleet/down/aa:bb:cc:dd:ee:ff", b"x", 2, 9),
    mqtt.subscribe([_DOWN], 0),
    frame(Kind.UNSUBSCRIBE, 2, b"\x00\x05\x00\x01#"),
    frame(Kind.PUBREL, 2, b"\x00\x09"),
    mqtt.acknowledge(Kind.PUBACK, 3),
    mqtt.PINGREQ,
    mqtt.DISCONNECT,
)
_FROM_BROKER = (
    mqtt.connack(0),
    mqtt.connack(5),
    mqtt.suback(1, b"\x00"),
    mqtt.acknowledge(Kind.PUBACK, 2),
    mqtt.publish(_UP, b'{"type":"listen"}'),
    mqtt.publish(_UP, b"y" * 200, 1, 5),
    mqtt.publish(_DOWN, b"z" * 130),
    b"\xd0\x00",
    b"\x30" + b"\xff\xff\x7f" + b"\x00\x10",
    b"\x32" + b"\x90\x80\x10" + b"\x00\x03a/b\x00\x07",
)


def make_stream(random: Random, packets: Sequence[bytes]) -> list[bytes]:
    """Return some packets, one of them damaged or noise between them, cut into chunks anywhere."""
    stream = [random.choice(packets) for _ in range(random.randrange(1, 6))]
    at = random.randrange(len(stream))
    match random.randrange(8):
        case 0:
            stream[at] = random.randbytes(random.randrange(1, 40))
        case 1 | 2 | 3 | 4:
            stream[at] = damage.damage_bytes(random, stream[at], random.choice(packets))
        case 5:
            stream[at] = _grown(random, stream[at])
    return damage.chunks(random, b"".join(stream))


def _grown(random: Random, packet: bytes) -> bytes:
    """Return a packet whose header announces another length than it has."""
    length = random.choice((0, 1, 2, 127, 128, 16_383, 16_384, 131_069, 131_070, 262_144, 262_145, 268_435_455))
    return fixed_header(Kind.PUBLISH, 0, length) + packet[2:]


def check_front(chunks: list[bytes]) -> None:
    """The packets are the same however the stream was cut; each can be read; only the own topic gets through."""
    splitter, packets = Splitter(), list[Packet]()
    for chunk in chunks:
        packets += splitter.feed(chunk)
        assert len(splitter._rest) <= LARGEST_OF_DEVICE
    whole = Splitter()
    assert whole.feed(b"".join(chunks)) == packets
    assert whole.fault == splitter.fault
    for packet in packets:
        _check_packet(packet)
    _check_gate(packets)


def _check_packet(packet: Packet) -> None:
    connect = mqtt.parse_connect(packet)
    if isinstance(connect, mqtt.Connect):
        again = Splitter().feed(mqtt.connect(connect))[0]
        assert mqtt.parse_connect(again) == connect
    publish = mqtt.parse_publish(packet)
    assert publish is None or len(publish.payload) <= len(packet.raw)
    wish = mqtt.parse_subscribe(packet)
    assert wish is None or wish[1]
    mqtt.parse_suback(packet)
    mqtt.parse_connack(packet)
    assert 0 <= mqtt.parse_id(packet) < 2**16
    admit(packet, _KEYS)


def _check_gate(packets: list[Packet]) -> None:
    gate = FrontGate(Admitted(_MAC, 60, b""), Counter())
    gate.connect_packet(_NEWS, None)
    gate.from_broker(mqtt.connack(0) + mqtt.suback(1, b"\x00") + mqtt.acknowledge(Kind.PUBACK, 2))
    assert gate.state == "open"
    step = GateStep()
    for packet in packets:
        gate.from_device(packet, step)
    for passed in Splitter().feed(step.to_broker):
        assert passed.kind in (Kind.PUBLISH, Kind.PINGREQ, Kind.PUBREL)
        head = mqtt.parse_publish(passed) if passed.kind == Kind.PUBLISH else None
        assert head is None or (head.topic == _UP and not head.retain)


def check_gate_broker(chunks: list[bytes]) -> None:
    """A broker may say anything at any time: the gate opens only after a good CONNACK, SUBACK and PUBACK."""
    gate = FrontGate(Admitted(_MAC, 60, b""), Counter())
    gate.connect_packet(_NEWS, Credentials("fleet-front", "service.k1", "secret"))
    said = b""
    for chunk in chunks:
        said += gate.from_broker(chunk).to_device
    assert gate.state == "open" or not said


def check_link(chunks: list[bytes]) -> None:
    """The same packets however the stream was cut, nothing after `Broken`, and never more kept than one packet."""
    reader, found = BrokerReader(), list[FromBroker]()
    for chunk in chunks:
        found += reader.feed(chunk)
        assert len(reader._splitter._rest) <= LARGEST_OF_BROKER
        if any(isinstance(packet, Broken) for packet in found):
            break
    whole = list(BrokerReader().feed(b"".join(chunks)))
    assert _until_broken(found) == _until_broken(whole)


def _until_broken(packets: list[FromBroker]) -> list[FromBroker]:
    ends = [at for at, packet in enumerate(packets) if isinstance(packet, Broken)]
    return packets[: ends[0] + 1] if ends else packets


TARGETS = (
    Target("front", lambda random: make_stream(random, _FROM_DEVICE), check_front, 12),
    Target("gate", lambda random: make_stream(random, _FROM_BROKER), check_gate_broker, 4),
    Target("link", lambda random: make_stream(random, _FROM_BROKER), check_link, 8),
)
