"""The packets that the front reads and writes, against bytes written by hand from the standard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Kind, Packet, Splitter
from fleet.wire.mqtt.packets import Connack, Connect, Publish, Suback, Will


def only(data: bytes) -> Packet:
    splitter = Splitter()
    packets = splitter.feed(data)
    assert not splitter.fault
    assert [packet.raw for packet in packets] == [data]
    return packets[0]


def test_connect_of_stock_firmware_is_read() -> None:
    raw = bytes.fromhex("101d 0004 4d515454 04 c2 001e 0003 6d6163 0004 75736572 0006 736563726574")
    assert mqtt.parse_connect(only(raw)) == Connect("mac", "user", "secret", 30)


def test_connect_of_mqtt_31_is_read() -> None:
    raw = bytes.fromhex("100f 0006 4d5149736470 03 02 003c 0001 61")
    assert mqtt.parse_connect(only(raw)) == Connect("a", keepalive=60, level=3)


def test_connect_of_another_version_gives_its_level_alone() -> None:
    assert mqtt.parse_connect(only(bytes.fromhex("100e 0004 4d515454 05 02 003c 00 0001 61"))) == 5
    assert mqtt.parse_connect(only(bytes.fromhex("100d 0004 4d515454 84 02 003c 0001 61"))) == 0x84


@pytest.mark.parametrize(
    "raw",
    [
        "1000",
        "100d 0004 4d515454 04 03 003c 0001 61",  # reserved flag
        "1010 0004 4d515454 04 42 003c 0001 61 0001 61",  # password without user name
        "100d 0004 4d515454 04 1a 003c 0001 61",  # will QoS without will
        "100d 0004 4d515454 04 82 003c 0001 61",  # user name missing
        "100e 0004 4d515454 04 02 003c 0001 61 00",  # one byte too many
        "100d 0004 4d515454 04 02 003c 0001 ff",  # no UTF-8
        "100d 0004 4d515455 04 02 003c 0001 61",  # another protocol
        "100f 0006 4d5149736470 04 02 003c 0001 61",  # name and level contradict each other
    ],
)
def test_wrong_connect_is_none(raw: str) -> None:
    assert mqtt.parse_connect(Packet(1, 0, 2, bytes.fromhex(raw))) is None


def test_refusal_of_version_5_has_the_form_of_version_5() -> None:
    assert mqtt.refuse_version(5) == bytes.fromhex("2003008400")
    assert mqtt.refuse_version(9) == bytes.fromhex("20020001")


def test_publish_is_read_at_every_qos() -> None:
    assert mqtt.parse_publish(only(bytes.fromhex("3005 0001 61 6869"))) == Publish("a", b"hi")
    assert mqtt.parse_publish(only(bytes.fromhex("3307 0001 61 0102 6869"))) == Publish("a", b"hi", 258, 3)


@pytest.mark.parametrize("raw", ["3001 00", "3003 0002 61", "3203 0001 61", "3205 0001 61 0000", "3605 0001 61 0001"])
def test_wrong_publish_is_none(raw: str) -> None:
    assert mqtt.parse_publish(only(bytes.fromhex(raw))) is None


def test_subscribe_is_read() -> None:
    raw = bytes.fromhex("820a 0007 0001 61 01 0001 23 00")
    assert mqtt.parse_subscribe(only(raw)) == (7, [("a", 1), ("#", 0)])


@pytest.mark.parametrize("raw", ["8202 0007", "8206 0000 0001 61 01", "8206 0007 0001 61 03", "8205 0007 0001 61"])
def test_wrong_subscribe_is_none(raw: str) -> None:
    assert mqtt.parse_subscribe(only(bytes.fromhex(raw))) is None


def test_packets_are_built_to_the_letter() -> None:
    assert mqtt.connack(5) == bytes.fromhex("20020005")
    assert mqtt.subscribe(["a"], 0, 7) == bytes.fromhex("8206 0007 0001 61 00")
    assert mqtt.subscribe(["a/+", "b"]) == b"\x82\x0c\x00\x01\x00\x03a/+\x01\x00\x01b\x01"
    assert mqtt.suback(7, b"\0\x80") == bytes.fromhex("9004 0007 0080")
    assert mqtt.publish("a", b"hi", 1, 258) == bytes.fromhex("3207 0001 61 0102 6869")
    assert mqtt.acknowledge(Kind.PUBACK, 3) == bytes.fromhex("40020003")
    assert mqtt.pubacks([3, 0x1234]) == bytes.fromhex("40020003 40021234")
    assert mqtt.parse_suback(only(bytes.fromhex("9003 0001 80"))) == Suback(1, b"\x80")
    assert mqtt.parse_connack(only(bytes.fromhex("2002 0105"))) == Connack(resumed=True, code=5)
    assert mqtt.parse_connack(only(bytes.fromhex("2001 00"))) is None


texts = st.text(max_size=40)


@given(
    st.builds(
        Connect,
        texts,
        texts,
        texts,
        st.integers(0, 0xFFFF),
        st.none() | st.builds(Will, texts, st.binary(max_size=300), st.integers(0, 2), st.booleans()),
        clean=st.booleans(),
        level=st.sampled_from([3, 4]),
    )
)
def test_connect_survives_the_way_there_and_back(wish: Connect) -> None:
    assert mqtt.parse_connect(only(mqtt.connect(wish))) == wish


@given(st.data())
def test_damaged_connect_never_raises(data: st.DataObject) -> None:
    will = Will("fleet/up/1/a", b"gone")
    raw = bytearray(mqtt.connect(Connect("aa:bb:cc:dd:ee:ff", "device.k1", "secret", 30, will)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(2, len(raw) - 1))] = data.draw(st.integers(0, 255))
    mqtt.parse_connect(Packet(1, 0, 2, bytes(raw)))


def test_connect_of_credentials_carries_all_fields_in_the_order_of_the_standard() -> None:
    who = Credentials("fleet-shard-3", "service.k1", "pw")
    expected = (
        b"\x00\x04MQTT\x04\xc4\x00\x0a" + b"\x00\x0dfleet-shard-3" + b"\x00\x01w\x00\x03bye\x00\x0aservice.k1\x00\x02pw"
    )
    made = mqtt.connect(Connect.of(who, 10, clean=False, will=Will("w", b"bye")))
    assert made == bytes([0x10, len(expected)]) + expected
    assert mqtt.connect(Connect.of(who, 10))[9] == 0xC2


def test_connect_without_a_user_name_signs_nobody_in() -> None:
    made = mqtt.connect(Connect.of(Credentials("fleet-front-1", "", ""), 20))
    assert mqtt.parse_connect(only(made)) == Connect("fleet-front-1", keepalive=20)
