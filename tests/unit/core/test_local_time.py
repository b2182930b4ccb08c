from datetime import UTC, datetime

import pytest

from fleet.core.local_time import offset, own_offset

SUMMER = datetime(2026, 7, 1, tzinfo=UTC)
WINTER = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "minutes"),
    [
        ("Europe/Berlin", SUMMER, 120),
        ("Europe/Berlin", WINTER, 60),
        ("Asia/Kolkata", WINTER, 330),
        ("-210", WINTER, -210),
        ("+60", WINTER, 60),
        ("900", WINTER, None),
        ("Nowhere/Land", WINTER, None),
        ("../../etc/passwd", WINTER, None),
        ("", WINTER, None),
    ],
)
def test_a_zone_is_some_minutes_from_utc(zone: str, now: datetime, minutes: int | None) -> None:
    assert offset(zone, now) == minutes


def test_a_device_without_a_good_zone_has_the_servers() -> None:
    assert own_offset("", 480, WINTER) == 480
    assert own_offset("nonsense", 480, WINTER) == 480
    assert own_offset("UTC", 480, WINTER) == 0
