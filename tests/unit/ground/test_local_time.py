import subprocess
import sys
from datetime import UTC, datetime

import pytest

from fleet.ground.local_time import offset, own_offset

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
        ("٦٠", WINTER, None),
    ],
)
def test_a_zone_is_some_minutes_from_utc(zone: str, now: datetime, minutes: int | None) -> None:
    assert offset(zone, now) == minutes


def test_a_device_without_a_good_zone_has_the_servers_with_summer_time() -> None:
    assert own_offset("", "480", WINTER) == 480
    assert own_offset("Nowhere/Land", "Europe/Berlin", WINTER) == 60
    assert own_offset("", "Europe/Berlin", SUMMER) == 120
    assert own_offset("Asia/Kolkata", "Europe/Berlin", SUMMER) == 330


@pytest.mark.parametrize(
    ("here", "zone"), [("Asia/Shanghai", "Asia/Shanghai"), (":Europe/Berlin", "Europe/Berlin"), ("XYZ-8", "480")]
)
def test_the_machines_zone_has_its_name_or_its_minutes(here: str, zone: str) -> None:
    # A process reads its zone once, so each case has a process of its own.
    program = "from fleet.ground.local_time import machine_zone; print(machine_zone())"
    done = subprocess.run([sys.executable, "-c", program], env={"TZ": here}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == zone
