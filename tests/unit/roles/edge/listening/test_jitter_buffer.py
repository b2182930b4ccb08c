from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.roles.edge.listening.jitter_buffer import MOST_FILLED, MOST_HELD, JitterBuffer


def released(arrivals: list[int], interval: float = 0.01) -> tuple[list[int | None], JitterBuffer]:
    order, out = JitterBuffer(), []
    for at, sequence in enumerate(arrivals):
        out += order.push(sequence, b"%d" % sequence, at * interval)
    out += order.flush()
    return [None if payload is None else int(payload) for payload in out], order


def test_packets_in_order_pass_at_once() -> None:
    order = JitterBuffer()
    assert [order.push(number, b"x", 0.0) for number in (1, 2, 3)] == [[b"x"]] * 3


def test_next_packet_passes_without_waiting_unless_others_wait() -> None:
    order = JitterBuffer()
    assert order.next(1)
    assert not order.next(1)
    assert order.push(3, b"3", 0.0) == []
    assert not order.next(2)
    assert order.push(2, b"2", 0.0) == [b"2", b"3"]
    assert order.next(4)


def test_swapped_packets_are_put_right() -> None:
    assert released([1, 3, 2, 4])[0] == [1, 2, 3, 4]


def test_lost_packet_is_given_up_after_a_few_others() -> None:
    order = JitterBuffer()
    order.push(1, b"1", 0.0)
    for number in range(3, 3 + MOST_HELD):
        assert order.push(number, b"%d" % number, 0.0) == []
    assert order.push(6, b"6", 0.0) == [None, b"3", b"4", b"5", b"6"]
    assert order.lost == 1


def test_lost_packet_is_given_up_after_a_while() -> None:
    order = JitterBuffer()
    order.push(1, b"1", 0.0)
    assert order.push(3, b"3", 0.06) == []
    assert order.push(4, b"4", 0.19) == [None, b"3", b"4"]


def test_packet_that_was_given_up_is_not_heard_late() -> None:
    out, order = released([1, 3, 4, 5, 6, 7, 2])
    assert out == [1, None, 3, 4, 5, 6, 7]
    assert order.late == 1


def test_long_gap_is_filled_only_a_little() -> None:
    out, order = released([1, 500, 501, 502, 503])
    assert out.count(None) == MOST_FILLED
    assert order.lost == 498


def test_session_that_begins_late_is_not_filled() -> None:
    assert released([34, 35, 36, 37, 38])[0] == [34, 35, 36, 37, 38]


@settings(deadline=None)
@given(st.permutations(range(1, 30)), st.sets(st.integers(1, 29)))
def test_output_is_always_in_order_and_never_doubled(arrivals: list[int], lost: set[int]) -> None:
    kept = [sequence for sequence in arrivals if sequence not in lost]
    out, order = released(kept)
    heard = [sequence for sequence in out if sequence is not None]
    assert heard == sorted(set(heard))
    assert len(heard) + order.late == len(kept)
