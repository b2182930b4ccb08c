"""Cutting streams into packets, at any place and of any size."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import LARGEST_OF_DEVICE, SKIPPED, Kind, Packet, Splitter, fixed_header, frame


def only(data: bytes) -> Packet:
    splitter = Splitter()
    packets = splitter.feed(data)
    assert not splitter.fault
    assert [packet.raw for packet in packets] == [data]
    return packets[0]


@pytest.mark.parametrize(
    ("size", "length"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (268_435_455, "ffffff7f"),
    ],
)
def test_length_is_written_in_as_many_bytes_as_it_needs(size: int, length: str) -> None:
    """The borders are those of table 2.4 of the standard."""
    assert fixed_header(Kind.PUBLISH, 3, size) == b"\x33" + bytes.fromhex(length)


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 50))
def test_stream_may_be_cut_anywhere(bodies: list[bytes], size: int) -> None:
    frames = [frame(Kind.PUBLISH, 0, body) for body in bodies]
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


def test_packet_of_the_largest_size_passes_and_one_byte_more_ends_the_stream() -> None:
    whole = frame(Kind.PUBLISH, 0, bytes(LARGEST_OF_DEVICE - 4))
    assert len(whole) == LARGEST_OF_DEVICE
    assert only(whole).raw == whole
    splitter = Splitter()
    assert splitter.feed(frame(Kind.PUBLISH, 0, bytes(LARGEST_OF_DEVICE - 3))[:5]) == []
    assert splitter.fault == "oversize"
    assert splitter.feed(mqtt.PINGREQ) == []


def test_length_of_five_digits_ends_the_stream_after_the_packets_before_it() -> None:
    splitter = Splitter()
    assert [packet.kind for packet in splitter.feed(mqtt.PINGREQ + b"\x30\x80\x80\x80\x80\x01")] == [Kind.PINGREQ]
    assert splitter.fault == "malformed"


def test_packet_in_one_chunk_is_not_copied() -> None:
    data = mqtt.publish("a", bytes(300))
    assert only(data).raw is data


@given(st.integers(0, 40), st.integers(1, 30), st.booleans())
def test_message_that_is_too_large_is_cut_down_to_its_head(more: int, size: int, acknowledged: bool) -> None:
    topic, packet_id = "a/topic", 7 if acknowledged else 0
    large = mqtt.publish(topic, bytes(200 + more), int(acknowledged), packet_id)
    stream = mqtt.PINGREQ + large + mqtt.publish("b", b"next")
    splitter = Splitter(200, skip_larger=True)
    found = [packet for at in range(0, len(stream), size) for packet in splitter.feed(stream[at : at + size])]
    assert [packet.kind for packet in found] == [Kind.PINGREQ, Kind.PUBLISH, Kind.PUBLISH]
    assert found[1].flags & SKIPPED
    head = mqtt.parse_publish(found[1])
    assert head is not None
    assert (head.topic, head.payload, head.packet_id, head.skipped) == (topic, b"", packet_id, True)
    assert mqtt.parse_publish(found[2]) == mqtt.Publish("b", b"next")


@pytest.mark.parametrize("raw", ["20ffff7f", "34ffff7f", "36ffff7f"])
def test_only_a_message_below_qos_2_is_skipped(raw: str) -> None:
    splitter = Splitter(200, skip_larger=True)
    assert splitter.feed(bytes.fromhex(raw)) == []
    assert splitter.fault == "oversize"
