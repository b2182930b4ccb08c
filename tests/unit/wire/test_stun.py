"""STUN's binding request and its answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.stun import MappedAddress, StunRefused, build_request, read_response
from tests.support.stun_server import message, xored

TRANSACTION = bytes(range(12))
PLAIN = bytes.fromhex("0001 22b4 cb007107".replace(" ", ""))
"""203.0.113.7:8884 as MAPPED-ADDRESS."""


def test_request_is_a_binding_request_without_attributes() -> None:
    assert build_request(TRANSACTION) == bytes.fromhex("00010000 2112a442".replace(" ", "")) + TRANSACTION


def test_answer_of_the_rfc_is_read() -> None:
    # RFC 5769, 2.2: the sample IPv4 response, with SOFTWARE, MESSAGE-INTEGRITY and FINGERPRINT.
    sample = bytes.fromhex(
        "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643"
        "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96"
    )
    assert read_response(sample, sample[8:20]) == MappedAddress("192.0.2.1", 32853)


def test_masked_address_wins_over_the_plain_one() -> None:
    answer = message(0x0101, TRANSACTION, (0x0001, PLAIN), (0x0020, xored("198.51.100.9", 9000)))
    assert read_response(answer, TRANSACTION) == MappedAddress("198.51.100.9", 9000)
    plain = message(0x0101, TRANSACTION, (0x0001, PLAIN))
    assert read_response(plain, TRANSACTION) == MappedAddress("203.0.113.7", 8884)


def test_of_two_of_a_kind_the_first_counts() -> None:
    twice = message(0x0101, TRANSACTION, (0x0020, xored("192.0.2.1", 1)), (0x0020, xored("192.0.2.2", 2)))
    assert read_response(twice, TRANSACTION) == MappedAddress("192.0.2.1", 1)


def test_refusal_carries_its_code() -> None:
    assert read_response(message(0x0111, TRANSACTION, (0x0009, b"\0\0\x04\x14gone")), TRANSACTION) == StunRefused(420)
    assert read_response(message(0x0111, TRANSACTION), TRANSACTION) == StunRefused(0)


@pytest.mark.parametrize(
    "attributes",
    [
        [],
        [(0x0020, bytes(3))],
        [(0x0020, b"\0\x02" + bytes(18))],
        [(0x0020, xored("192.0.2.1", 1)), (0x7FFF, b"must be understood")],
    ],
    ids=["no address", "short", "IPv6", "unknown and required"],
)
def test_unusable_success_is_a_refusal(attributes: list[tuple[int, bytes]]) -> None:
    assert read_response(message(0x0101, TRANSACTION, *attributes), TRANSACTION) == StunRefused(0)


def test_somebody_elses_answer_is_none() -> None:
    good = message(0x0101, TRANSACTION, (0x0020, xored("192.0.2.1", 1)))
    assert read_response(good, bytes(12)) is None
    assert read_response(good[:-1], TRANSACTION) is None
    assert read_response(good[:4] + bytes(4) + good[8:], TRANSACTION) is None
    assert read_response(build_request(TRANSACTION), TRANSACTION) is None


@given(st.binary(max_size=80))
def test_nothing_raises(data: bytes) -> None:
    read_response(data, data[8:20])
    read_response(b"\x01\x01" + len(data).to_bytes(2, "big") + b"\x21\x12\xa4\x42" + bytes(12) + data, bytes(12))
