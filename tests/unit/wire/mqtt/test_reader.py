"""What a client reads, against packets written by hand from the standard."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.mqtt import packets
from fleet.wire.mqtt.framing import SKIPPED
from fleet.wire.mqtt.packets import Connack, Publish, Suback
from fleet.wire.mqtt.reader import LARGEST_OF_BROKER, Broken, BrokerReader, FromBroker, Pingresp, Puback


def packet(first: int, body: bytes) -> bytes:
    """Return a packet whose length is always written in four bytes, which the standard allows to read."""
    groups = [len(body) >> shift & 0x7F for shift in (0, 7, 14, 21)]
    return bytes([first, groups[0] | 0x80, groups[1] | 0x80, groups[2] | 0x80, groups[3]]) + body


def message(topic: bytes, payload: bytes, identifier: int | None) -> bytes:
    number = b"" if identifier is None else struct.pack("!H", identifier)
    return packet(0x30 if identifier is None else 0x32, struct.pack("!H", len(topic)) + topic + number + payload)


def read(*chunks: bytes) -> list[FromBroker]:
    reader = BrokerReader()
    return [found for chunk in chunks for found in reader.feed(chunk)]


@given(st.text(max_size=40), st.binary(max_size=300))
def test_published_message_can_be_read(topic: str, payload: bytes) -> None:
    assert read(packets.publish(topic, payload)) == [Publish(topic, payload)]


@pytest.mark.parametrize("size", [0, 127, 128, 16_383, 16_384, 70_000])
def test_length_is_written_in_as_many_bytes_as_it_needs(size: int) -> None:
    payload = bytes(size)
    assert read(packets.publish("t", payload)) == [Publish("t", payload)]


@given(st.data())
def test_chunking_makes_no_difference(data: st.DataObject) -> None:
    stream = (
        b"\x20\x02\x01\x00"
        + message(b"a/b", b"payload", 7)
        + packet(0x90, b"\x00\x01\x01\x80")
        + message("ü".encode(), b"", None)
        + b"\xd0\x00"
        + b"\x40\x02\x01\x02"
        + message(b"t", b"x" * (LARGEST_OF_BROKER + 5), 9)
        + message(b"t", b"end", 10)
    )
    small = data.draw(st.lists(st.integers(0, 60), max_size=10))
    cuts = sorted({*small, *data.draw(st.lists(st.integers(0, len(stream)), max_size=6))})
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*chunks) == [
        Connack(resumed=True, code=0),
        Publish("a/b", b"payload", 7, 2),
        Suback(1, b"\x01\x80"),
        Publish("ü", b""),
        Pingresp(),
        Puback(258),
        Publish("t", b"", 9, 2 | SKIPPED),
        Publish("t", b"end", 10, 2),
    ]


def test_topic_that_is_not_utf8_is_still_a_message() -> None:
    assert read(message(b"\xff", b"p", 1)) == [Publish("\ufffd", b"p", 1, 2)]


@pytest.mark.parametrize(
    "stream",
    [
        b"\x30\xff\xff\xff\xff\x01",  # a length of five bytes
        b"\x30\x01\x00",  # no topic length
        b"\x30\x04\x00\x09ab",  # topic longer than the packet
        b"\x32\x03\x00\x01a",  # no packet id
        b"\x34\x05\x00\x01a\x00\x01",  # QoS 2
        b"\x32\x05\x00\x01a\x00\x00",  # packet id 0 (2.3.1)
        b"\x20\x01\x00",
        b"\x40\x03\x00\x01\x00",
        b"\x40\x02\x00\x00",
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
    reader = BrokerReader()
    for chunk in chunks:
        if any(isinstance(found, Broken) for found in reader.feed(chunk)):
            break
