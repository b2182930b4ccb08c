"""Hours in which devices are left alone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fleet.core.quiet_hours import QuietHours

NIGHT = QuietHours.parse("22:00-07:00")


def at(hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 11, 26, hour, minute, tzinfo=UTC).timestamp() * 1000)


def test_quiet_hours_are_in_the_time_of_the_device() -> None:
    minute = 60_000
    assert NIGHT.left(at(21, 59), 0) == 0
    assert NIGHT.left(at(22), 0) == 9 * 60 * minute
    assert NIGHT.left(at(6, 59), 0) == minute
    assert NIGHT.left(at(7), 0) == 0
    assert NIGHT.left(at(21), 60) == 9 * 60 * minute, "one hour east"
    assert NIGHT.left(at(12), -12 * 60) == 7 * 60 * minute
    assert QuietHours.parse("12:00-13:00").left(at(12, 30), 0) == 30 * minute


@given(some.integers(0, 2**42), some.integers(-14 * 60, 14 * 60), some.integers(0, 1439), some.integers(1, 1439))
def test_after_what_is_left_the_hours_are_over(now: int, offset: int, begin: int, length: int) -> None:
    hours = QuietHours(begin, (begin + length) % 1440)
    left = hours.left(now, offset)
    assert 0 <= left <= length * 60_000
    assert hours.left(now + left, offset) == 0 or left == 0


def test_other_texts_are_refused() -> None:
    for text in ("", "22-7", "24:00-07:00", "22:00-22:00", "22:00-07:60", " 22:00-07:00"):
        with pytest.raises(ValueError, match="HH:MM"):
            QuietHours.parse(text)
