"""What passes the gate between one device and the broker."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.roles.front.connect_check import Admitted
from fleet.roles.front.gate import Announcement, FrontGate, GateStep
from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Kind, Splitter, frame
from fleet.wire.mqtt.packets import Connect, Will
from fleet.wire.topics import down_topic, presence_topic, up_topic

MAC = "02:00:00:00:00:07"
UP, DOWN = up_topic(MAC), down_topic(MAC)
SUBACK = mqtt.suback(1, b"\0")
PUBACK = mqtt.acknowledge(Kind.PUBACK, 2)
NEWS = Announcement(b"here", b"absent")
READY = mqtt.connack(0) + SUBACK + PUBACK


def new_gate(will: bytes = b"") -> FrontGate:
    gate = FrontGate(Admitted(MAC, 30, will), Counter())
    gate.connect_packet(NEWS, None)
    return gate


def open_gate(will: bytes = b"") -> FrontGate:
    gate = new_gate(will)
    gate.from_broker(READY)
    assert gate.state == "open"
    return gate


def send(gate: FrontGate, *raw: bytes) -> GateStep:
    step = GateStep()
    for packet in Splitter().feed(b"".join(raw)):
        gate.from_device(packet, step)
    return step


def test_broker_is_told_the_devices_name_and_what_to_say_should_the_front_die() -> None:
    raw = new_gate().connect_packet(NEWS, Credentials("fleet-front-1", "name", "secret"))
    will = Will(presence_topic(MAC), b"absent", qos=1)
    assert mqtt.parse_connect(Splitter().feed(raw)[0]) == Connect(MAC, "name", "secret", 30, will)


@pytest.mark.parametrize("answers", [(SUBACK, PUBACK), (PUBACK, SUBACK)])
def test_device_is_answered_only_when_it_can_be_reached_and_its_presence_is_with_the_broker(
    answers: tuple[bytes, bytes],
) -> None:
    gate = new_gate()
    online = mqtt.publish(presence_topic(MAC), b"here", 1, 2)
    assert gate.from_broker(mqtt.connack(0)) == GateStep(to_broker=mqtt.subscribe([DOWN], 0) + online)
    assert gate.from_broker(answers[0]) == GateStep()
    assert gate.state == "announcing"
    assert gate.from_broker(answers[1]) == GateStep(to_device=mqtt.connack(0))
    assert gate.state == "open"


def test_message_before_the_device_is_answered_comes_after_its_answer() -> None:
    gate = new_gate()
    early, late = mqtt.publish(DOWN, b"early"), mqtt.publish(DOWN, b"on time")
    assert gate.from_broker(mqtt.connack(0) + SUBACK + early).to_device == b""
    assert gate.from_broker(PUBACK + late) == GateStep(to_device=mqtt.connack(0) + early + late)


def test_what_waits_for_the_answer_is_bounded() -> None:
    gate, message = new_gate(), mqtt.publish(DOWN, bytes(950))
    gate.from_broker(mqtt.connack(0) + 10 * message)
    assert gate.from_broker(SUBACK + PUBACK) == GateStep(to_device=mqtt.connack(0) + 8 * message)
    assert gate._counts["early"] == 2


def test_presence_that_may_not_have_arrived_is_followed_by_its_end() -> None:
    gate = new_gate(mqtt.publish(UP, b"gone"))
    assert not gate.announced
    gate.from_broker(mqtt.connack(0) + SUBACK)
    assert gate.announced
    assert gate.closing_packets() == mqtt.publish(presence_topic(MAC), b"absent", 1, 3) + mqtt.DISCONNECT


@pytest.mark.parametrize(
    "answers",
    [
        mqtt.connack(5),
        mqtt.PINGREQ,
        mqtt.connack(0) + mqtt.suback(1, b"\x80"),
        mqtt.connack(0) + mqtt.suback(2, b"\0"),
        mqtt.connack(0) + mqtt.suback(1, b"\0\0"),
        mqtt.connack(0) + mqtt.connack(0),
        mqtt.connack(0) + mqtt.acknowledge(Kind.PUBACK, 1),
    ],
)
def test_broker_that_refuses_ends_the_connection(answers: bytes) -> None:
    gate = new_gate()
    assert gate.from_broker(answers).end == "broker refused"
    assert gate.state != "open"


def test_broker_that_breaks_the_framing_ends_the_connection() -> None:
    assert open_gate().from_broker(b"\x30\xff\xff\xff\x7f").end == "broker oversize"


def test_half_a_message_of_the_brokers_waits_for_its_rest() -> None:
    gate, raw = open_gate(), mqtt.publish(DOWN, b"x" * 1000)
    assert gate.from_broker(raw[:500]) == GateStep()
    assert gate.from_broker(raw[500:]) == GateStep(to_device=raw)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_own_message_passes_unchanged(qos: int) -> None:
    raw = mqtt.publish(UP, b"hello", qos, 5)
    assert send(open_gate(), raw) == GateStep(to_broker=raw)


@pytest.mark.parametrize("topic", [DOWN, presence_topic(MAC), f"{UP}/", UP[:-1], UP.upper(), "", "$SYS/x"])
def test_message_on_any_other_topic_is_dropped_but_acknowledged(topic: str) -> None:
    gate = open_gate()
    assert send(gate, mqtt.publish(topic, b"x")) == GateStep()
    assert send(gate, mqtt.publish(topic, b"x", 1, 5)) == GateStep(to_device=mqtt.acknowledge(Kind.PUBACK, 5))
    assert send(gate, mqtt.publish(topic, b"x", 2, 6)) == GateStep(to_device=mqtt.acknowledge(Kind.PUBREC, 6))
    pubrel = frame(Kind.PUBREL, 2, (6).to_bytes(2))
    assert send(gate, pubrel) == GateStep(to_device=mqtt.acknowledge(Kind.PUBCOMP, 6))
    assert send(gate, pubrel) == GateStep(to_broker=pubrel)
    assert gate._counts["foreign topic"] == 3


def test_retained_message_is_dropped() -> None:
    raw = bytearray(mqtt.publish(UP, b"x"))
    raw[0] |= 1
    assert send(open_gate(), bytes(raw)) == GateStep()


def test_refused_messages_that_are_never_released_end_the_connection() -> None:
    step = send(open_gate(), *(mqtt.publish("x", b"", 2, number) for number in range(1, 70)))
    assert step.end == "protocol"


def test_own_subscription_is_granted_without_the_broker_and_any_other_denied() -> None:
    wanted = b"".join(mqtt._text(one) + b"\1" for one in (DOWN, "#", "fleet/down/+", UP, DOWN))
    step = send(open_gate(), frame(Kind.SUBSCRIBE, 2, (9).to_bytes(2) + wanted))
    assert step == GateStep(to_device=mqtt.suback(9, b"\0\x80\x80\x80\0"))


def test_unsubscribe_is_answered_without_the_broker() -> None:
    raw = frame(Kind.UNSUBSCRIBE, 2, (9).to_bytes(2) + mqtt._text(DOWN))
    assert send(open_gate(), raw) == GateStep(to_device=mqtt.acknowledge(Kind.UNSUBACK, 9))


def test_ping_passes_both_ways() -> None:
    gate = open_gate()
    assert send(gate, mqtt.PINGREQ) == GateStep(to_broker=mqtt.PINGREQ)
    assert gate.from_broker(b"\xd0\0") == GateStep(to_device=b"\xd0\0")


def test_stray_acknowledgement_is_kept_from_the_broker() -> None:
    assert send(open_gate(), mqtt.acknowledge(Kind.PUBACK, 3)) == GateStep()


@pytest.mark.parametrize("kind", [0, 1, 2, 9, 11, 13, 15])
def test_packet_that_no_device_may_send_ends_the_connection(kind: int) -> None:
    assert send(open_gate(), bytes((kind << 4, 0))).end == "protocol"


def test_closing_packets_hold_the_last_message_unless_the_device_said_goodbye() -> None:
    will = mqtt.publish(UP, b"gone")
    gate = open_gate(will)
    assert gate.closing_packets() == will + mqtt.DISCONNECT
    assert send(gate, mqtt.DISCONNECT) == GateStep(end="left")
    assert gate.closing_packets() == mqtt.DISCONNECT
    assert new_gate(will).closing_packets() == b""


raws = st.binary(max_size=200) | st.builds(
    lambda first, body: bytes((first, len(body))) + body, st.integers(0, 255), st.binary(max_size=100)
)


@given(st.lists(raws, max_size=10))
def test_no_stream_of_a_device_raises_or_reaches_a_foreign_topic(chunks: list[bytes]) -> None:
    gate, splitter = open_gate(), Splitter()
    for chunk in chunks:
        step = GateStep()
        for packet in splitter.feed(chunk):
            gate.from_device(packet, step)
        for passed in Splitter().feed(step.to_broker):
            assert passed.kind in (Kind.PINGREQ, Kind.PUBREL, Kind.PUBLISH)
            if passed.kind == Kind.PUBLISH:
                assert mqtt.parse_publish(passed).topic == UP.encode()


@given(st.lists(raws, max_size=10), st.booleans())
def test_no_stream_of_a_broker_raises(chunks: list[bytes], opened: bool) -> None:
    gate = open_gate() if opened else new_gate()
    for chunk in chunks:
        gate.from_broker(chunk)
