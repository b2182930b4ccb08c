"""mqtt_packets, against packets written by hand from the standard."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.net.mqtt import packets
from fleet.adapters.net.mqtt.packets import (
    LARGEST,
    Broken,
    Connected,
    Incoming,
    LastWill,
    PacketReader,
    PingResponse,
    Subscribed,
)
from fleet.wire.identity import Credentials


def packet(first: int, body: bytes) -> bytes:
    """Return a packet whose length is always written in four bytes, which the standard allows to read."""
    groups = [len(body) >> shift & 0x7F for shift in (0, 7, 14, 21)]
    return bytes([first, groups[0] | 0x80, groups[1] | 0x80, groups[2] | 0x80, groups[3]]) + body


def message(topic: bytes, payload: bytes, identifier: int | None) -> bytes:
    number = b"" if identifier is None else struct.pack("!H", identifier)
    return packet(0x30 if identifier is None else 0x32, struct.pack("!H", len(topic)) + topic + number + payload)


def read(*chunks: bytes) -> list[packets.Packet]:
    reader = PacketReader()
    return [found for chunk in chunks for found in reader.feed(chunk)]


def test_connect_carries_all_fields_in_the_order_of_the_standard() -> None:
    who = Credentials("fleet-shard-3", "service.k1", "pw")
    expected = (
        b"\x00\x04MQTT\x04\xc4\x00\x0a" + b"\x00\x0dfleet-shard-3" + b"\x00\x01w\x00\x03bye\x00\x0aservice.k1\x00\x02pw"
    )
    made = packets.connect(who, 10, clean=False, will=LastWill("w", b"bye"))
    assert made == bytes([0x10, len(expected)]) + expected
    clean = packets.connect(who, 10, clean=True, will=None)
    assert clean[9] == 0xC2


def test_subscribe_asks_for_qos_1() -> None:
    assert packets.subscribe(["a/+", "b"]) == b"\x82\x0c\x00\x01\x00\x03a/+\x01\x00\x01b\x01"


def test_acknowledgements_keep_their_order() -> None:
    assert packets.acknowledge([3, 0x1234]) == b"\x40\x02\x00\x03\x40\x02\x12\x34"


@given(st.text(max_size=40), st.binary(max_size=300))
def test_published_message_can_be_read(topic: str, payload: bytes) -> None:
    assert read(packets.publish(topic, payload)) == [Incoming(topic, payload, None)]


@pytest.mark.parametrize("size", [0, 127, 128, 16_383, 16_384, 70_000])
def test_length_is_written_in_as_many_bytes_as_it_needs(size: int) -> None:
    payload = bytes(size)
    assert read(packets.publish("t", payload)) == [Incoming("t", payload, None)]


@given(st.data())
def test_chunking_makes_no_difference(data: st.DataObject) -> None:
    stream = (
        b"\x20\x02\x01\x00"
        + message(b"a/b", b"payload", 7)
        + packet(0x90, b"\x00\x01\x01\x80")
        + message("ü".encode(), b"", None)
        + b"\xd0\x00"
        + message(b"t", b"x" * (LARGEST + 5), 9)
        + message(b"t", b"end", 10)
    )
    small = data.draw(st.lists(st.integers(0, 60), max_size=10))
    cuts = sorted({*small, *data.draw(st.lists(st.integers(0, len(stream)), max_size=6))})
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*chunks) == [
        Connected(resumed=True, code=0),
        Incoming("a/b", b"payload", 7),
        Subscribed(b"\x01\x80"),
        Incoming("ü", b"", None),
        PingResponse(),
        Incoming("t", b"", 9, skipped=True),
        Incoming("t", b"end", 10),
    ]


def test_topic_that_is_not_utf8_is_still_a_message() -> None:
    assert read(message(b"\xff", b"p", 1)) == [Incoming("\ufffd", b"p", 1)]


@pytest.mark.parametrize(
    "stream",
    [
        b"\x30\xff\xff\xff\xff\x01",  # a length of five bytes
        b"\x30\x01\x00",  # no topic length
        b"\x30\x04\x00\x09ab",  # topic longer than the packet
        b"\x32\x03\x00\x01a",  # no packet id
        b"\x34\x05\x00\x01a\x00\x01",  # QoS 2
        b"\x20\x01\x00",
        b"\x90\x02\x00\x01",
        b"\x10\x00",  # CONNECT is never sent to a client
        b"\x20\xff\xff\xff\x7f",  # a CONNACK of 256 MB
        b"\x34\xff\xff\xff\x7f",
    ],
)
def test_what_no_broker_may_send_is_broken(stream: bytes) -> None:
    (found,) = read(stream)
    assert isinstance(found, Broken)


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_raise(chunks: list[bytes]) -> None:
    reader = PacketReader()
    for chunk in chunks:
        if any(isinstance(found, Broken) for found in reader.feed(chunk)):
            break
