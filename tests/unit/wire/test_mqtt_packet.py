"""The packets that the front reads and writes, against bytes written by hand from the standard."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.wire import mqtt_packet as mqtt
from fleet.wire.mqtt_packet import Connect, Kind, Packet, Splitter, Will


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
    assert mqtt.parse_publish(only(bytes.fromhex("3005 0001 61 6869"))) == (b"a", 0, False, 0, b"hi")
    assert mqtt.parse_publish(only(bytes.fromhex("3307 0001 61 0102 6869"))) == (b"a", 1, True, 258, b"hi")


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
    assert mqtt.subscribe(1, "a", 0) == bytes.fromhex("8206 0001 0001 61 00")
    assert mqtt.suback(7, b"\0\x80") == bytes.fromhex("9004 0007 0080")
    assert mqtt.publish("a", b"hi", 1, 258) == bytes.fromhex("3207 0001 61 0102 6869")
    assert mqtt.acknowledge(Kind.PUBACK, 3) == bytes.fromhex("40020003")
    assert mqtt.parse_suback(only(bytes.fromhex("9003 0001 80"))) == (1, b"\x80")
    assert mqtt.parse_connack(only(bytes.fromhex("2002 0005"))) == 5
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
def test_connect_survives_the_way_there_and_back(order: Connect) -> None:
    assert mqtt.parse_connect(only(mqtt.connect(order))) == order


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 50))
def test_stream_may_be_cut_anywhere(bodies: list[bytes], size: int) -> None:
    frames = [mqtt.frame(Kind.PUBLISH, 0, body) for body in bodies]
    stream, splitter = b"".join(frames), Splitter()
    found = [packet for at in range(0, len(stream), size) for packet in splitter.feed(stream[at : at + size])]
    assert [packet.raw for packet in found] == frames
    assert [packet.raw[packet.start :] for packet in found] == bodies


@given(st.lists(st.binary(max_size=600), max_size=20))
@example([b"\x30\xff\xff\xff\xff\x01"])
@example([b"\x10\x7f" + bytes(range(127))])
def test_damaged_stream_neither_raises_nor_grows(chunks: list[bytes]) -> None:
    splitter = Splitter(largest=500)
    for chunk in chunks:
        for packet in splitter.feed(chunk):
            assert len(packet.raw) <= 500
            for parse in (mqtt.parse_connect, mqtt.parse_publish, mqtt.parse_subscribe, mqtt.parse_suback):
                parse(packet)
            mqtt.parse_connack(packet)
            mqtt.parse_id(packet)
        assert len(splitter._rest) <= 500


@given(st.data())
def test_damaged_connect_never_raises(data: st.DataObject) -> None:
    will = Will("fleet/up/1/a", b"gone")
    raw = bytearray(mqtt.connect(Connect("aa:bb:cc:dd:ee:ff", "device.k1", "secret", 30, will)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(2, len(raw) - 1))] = data.draw(st.integers(0, 255))
    mqtt.parse_connect(Packet(1, 0, 2, bytes(raw)))


def test_packet_of_the_largest_size_passes_and_one_byte_more_ends_the_stream() -> None:
    whole = mqtt.frame(Kind.PUBLISH, 0, bytes(mqtt.LARGEST - 4))
    assert len(whole) == mqtt.LARGEST
    assert only(whole).raw == whole
    splitter = Splitter()
    assert splitter.feed(mqtt.frame(Kind.PUBLISH, 0, bytes(mqtt.LARGEST - 3))[:5]) == []
    assert splitter.fault == "oversize"
    assert splitter.feed(mqtt.PINGREQ) == []


def test_length_of_five_digits_ends_the_stream_after_the_packets_before_it() -> None:
    splitter = Splitter()
    assert [packet.kind for packet in splitter.feed(mqtt.PINGREQ + b"\x30\x80\x80\x80\x80\x01")] == [Kind.PINGREQ]
    assert splitter.fault == "malformed"
