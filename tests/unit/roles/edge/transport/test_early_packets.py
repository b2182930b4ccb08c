from collections import Counter

from fleet.roles.edge.transport.early_packets import (
    LONGEST_WAIT,
    MOST_PACKETS,
    MOST_SENDERS,
    MOST_WAITING,
    EarlyPacketBuffer,
)

HERE, ELSEWHERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


def test_kept_packets_are_handed_out_once_in_order() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    buffer.keep(7, b"a", HERE, 0.0)
    buffer.keep(7, b"b", HERE, 0.1)
    assert buffer.claim(7, 0.2) == [(b"a", HERE, 0.0), (b"b", HERE, 0.1)]
    assert buffer.claim(7, 0.2) == []
    assert not drops


def test_nobody_fills_the_place_of_another_address_and_packets_keep_their_order() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    for _ in range(MOST_PACKETS + 5):
        buffer.keep(7, b"x", ELSEWHERE, 0.0)
    buffer.keep(7, b"a", HERE, 0.1)
    buffer.keep(7, b"y", ELSEWHERE, 0.2)
    buffer.keep(8, b"z", ELSEWHERE, 0.2)
    assert drops == {"unknown_ssrc": 6}
    assert buffer.claim(7, 0.3)[-2:] == [(b"x", ELSEWHERE, 0.0), (b"a", HERE, 0.1)]
    assert buffer.claim(8, 0.3) == [(b"z", ELSEWHERE, 0.2)]


def test_packets_that_waited_too_long_are_not_handed_out() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    buffer.keep(7, b"a", HERE, 0.0)
    buffer.keep(7, b"b", HERE, 1.0)
    assert buffer.claim(7, LONGEST_WAIT + 0.5) == [(b"b", HERE, 1.0)]
    assert drops == {"unknown_ssrc": 1}


def test_strangers_who_guess_keep_no_device_out() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    for ssrc in range(MOST_SENDERS + 10):
        buffer.keep(ssrc, b"a", HERE, 0.0)
    buffer.keep(99_999, b"b", HERE, 0.1)
    assert drops["unknown_ssrc"] == 11
    assert buffer.claim(99_999, 0.2) == [(b"b", HERE, 0.1)]
    assert buffer.claim(10, 0.2) == []


def test_room_is_bounded_for_each_and_for_all() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    for ssrc in range(MOST_WAITING // MOST_PACKETS):
        for _ in range(MOST_PACKETS + 1):
            buffer.keep(ssrc, b"a", HERE, 0.0)
    assert drops["unknown_ssrc"] == MOST_WAITING // MOST_PACKETS
    buffer.keep(99, b"a", HERE, 0.0)
    assert drops["unknown_ssrc"] == MOST_WAITING // MOST_PACKETS + MOST_PACKETS
    assert sum(map(len, buffer._packets.values())) <= MOST_WAITING


def test_packets_that_nobody_claims_are_counted() -> None:
    drops = Counter[str]()
    buffer = EarlyPacketBuffer(drops)
    for ssrc in (1, 1, 2):
        buffer.keep(ssrc, b"a", HERE, 0.0)
    buffer.expire(LONGEST_WAIT)
    assert not drops
    buffer.expire(LONGEST_WAIT + 0.1)
    assert drops == {"unknown_ssrc": 3}
