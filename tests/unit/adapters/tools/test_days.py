from datetime import date

import pytest

from fleet.adapters.tools.days import find_day

FRIDAY = date(2025, 2, 28)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("", FRIDAY),
        ("Today", FRIDAY),
        ("今天", FRIDAY),
        ("tomorrow", date(2025, 3, 1)),
        ("明天", date(2025, 3, 1)),
        ("后天", date(2025, 3, 2)),
        ("the day after tomorrow", date(2025, 3, 2)),
        ("大后天", date(2025, 3, 3)),
        ("yesterday", date(2025, 2, 27)),
        ("前天", date(2025, 2, 26)),
        ("2025-03-05", date(2025, 3, 5)),
        ("2025/3/5", date(2025, 3, 5)),
        ("2025年3月5日", date(2025, 3, 5)),
        ("2025-03-05T08:00:00Z", date(2025, 3, 5)),
        ("3月5日", date(2025, 3, 5)),
        ("12-31", date(2024, 12, 31)),
        ("Friday", FRIDAY),
        ("on sunday", date(2025, 3, 2)),
        ("周三", date(2025, 3, 5)),
        ("星期天", date(2025, 3, 2)),
        ("下周一", date(2025, 3, 3)),
        ("next friday", date(2025, 3, 7)),
    ],
)
def test_a_day_is_found_by_its_name(text: str, day: date) -> None:
    assert find_day(text, FRIDAY) == day


@pytest.mark.parametrize(
    "text", ["whenever", "2025-02-30", "31/12", "13月1日", "0-0-0", "99999-1-1", "周八", "next year"]
)
def test_what_is_no_day_is_not_guessed(text: str) -> None:
    assert find_day(text, FRIDAY) is None


def test_a_day_and_a_month_mean_the_nearest_such_day() -> None:
    assert find_day("1月2日", date(2025, 12, 30)) == date(2026, 1, 2)
    assert find_day("2月29日", date(2025, 1, 1)) == date(2024, 2, 29)
