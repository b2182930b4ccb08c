from hypothesis import given
from hypothesis import strategies as st

from fleet.workbench.sim.connection.keystream import Keystream, Ranges


def _header(timestamp: int, sequence: int, flags: int = 0, length: int = 20) -> bytes:
    head = bytes([1, flags]) + length.to_bytes(2, "big") + bytes(4)
    return head + timestamp.to_bytes(4, "big") + sequence.to_bytes(4, "big")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), max_size=30))
def test_ranges_know_exactly_the_numbers_that_were_added(spans: list[tuple[int, int]]) -> None:
    ranges, numbers = Ranges(), set[int]()
    for start, length in spans:
        assert ranges.meets(start, start + length) == bool(numbers & set(range(start, start + length)))
        ranges.add(start, start + length)
        numbers |= set(range(start, start + length))


def test_touching_ranges_become_one() -> None:
    ranges = Ranges()
    for start in range(0, 1000, 2):
        ranges.add(start, start + 2)
    assert len(ranges) == 1


def test_a_standing_timestamp_lets_neighbours_of_two_blocks_meet() -> None:
    keystream = Keystream()
    assert not keystream.receive(_header(60, 1, 0x80), 20)
    assert keystream.receive(_header(60, 2, 0x80), 20)


def test_a_rising_timestamp_keeps_packets_apart() -> None:
    keystream = Keystream()
    assert not any(keystream.receive(_header(60 * number, number, 0x80), 200) for number in range(1, 500))


def test_the_uplinks_own_overlap_is_firmwares_and_not_reported() -> None:
    keystream = Keystream()
    assert not any(keystream.send(_header(0, number), 20) for number in range(1, 50))


def test_an_uplink_packet_that_meets_a_downlink_packet_is_reported() -> None:
    keystream = Keystream()
    keystream.receive(_header(0, 7), 20)
    assert keystream.send(_header(0, 8), 20)
    assert not keystream.send(_header(0, 9), 20)
