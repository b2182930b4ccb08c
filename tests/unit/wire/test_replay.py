from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.replay import MOST_SPANS, UsedNumbers


def used(*numbers: int) -> UsedNumbers:
    found = UsedNumbers()
    for number in numbers:
        found.add(number)
    return found


def test_zero_is_used_and_nothing_else_at_first() -> None:
    found = used()
    assert 0 in found
    assert 1 not in found
    assert found.newest == 0


def test_numbers_far_below_the_newest_are_remembered() -> None:
    found = used(*range(1, 100), *range(5000, 5100))
    assert 99 in found
    assert 100 not in found
    assert 4999 not in found
    assert 5000 in found


def test_the_oldest_gap_counts_as_used_when_there_are_too_many() -> None:
    found = used(*range(2, 2 * MOST_SPANS + 4, 2))
    assert 1 in found
    assert 3 in found
    assert 2 * MOST_SPANS + 1 not in found


@given(st.lists(st.integers(1, 90), max_size=200))
def test_each_number_is_used_once(numbers: list[int]) -> None:
    found, plain = used(), {0}
    for number in numbers:
        assert (number in found) == (number in plain)
        if number not in found:
            found.add(number)
            plain.add(number)
        assert found.newest == max(plain)


@given(st.lists(st.integers(1, 2**32 - 1) | st.integers(1, 1000), max_size=300))
def test_none_is_used_twice_and_little_is_kept(numbers: list[int]) -> None:
    found, plain = used(), set[int]()
    for number in numbers:
        if number not in found:
            assert number not in plain
            found.add(number)
            plain.add(number)
    assert len(found._firsts) == len(found._lasts) <= MOST_SPANS
