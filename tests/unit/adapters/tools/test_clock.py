import zoneinfo
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.adapters.tools.clock import Zones, clock_tool
from fleet.core.server_tools import Caller

ZONES = Zones()
NOON = datetime(2025, 7, 1, 12, tzinfo=UTC)


async def ask(offset: int = 0, **arguments: Any) -> Any:
    tool = clock_tool(ZONES, lambda: NOON)
    return await tool.run(arguments, Caller("s", timezone_offset=offset))


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        ("america/new_york", "America/New_York"),
        ("New York", "America/New_York"),
        ("北京", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("上海市", "Asia/Shanghai"),
        ("Tokyo", "Asia/Tokyo"),
        ("tokyo time", "Asia/Tokyo"),
        ("纽约", "America/New_York"),
        ("London, UK", "Europe/London"),
        ("São Paulo", "America/Sao_Paulo"),
        ("UTC", "UTC"),
    ],
)
def test_a_zone_is_found_by_what_people_call_it(text: str, zone: str) -> None:
    found = ZONES.find(text)
    assert isinstance(found, zoneinfo.ZoneInfo)
    assert found.key == zone


@pytest.mark.parametrize(("text", "hours"), [("UTC+8", 8), ("GMT-3", -3), ("+05:30", 5.5), ("+0900", 9), ("-11", -11)])
def test_an_offset_is_a_zone_with_the_sign_that_people_mean(text: str, hours: float) -> None:
    zone = ZONES.find(text)
    assert zone is not None
    offset = NOON.astimezone(zone).utcoffset()
    assert offset is not None
    assert offset.total_seconds() == hours * 3600


@pytest.mark.parametrize("text", ["美国", "Mars", "West", "../../etc/passwd", "+99", "+08:75", "a" * 1000])
def test_what_is_no_zone_or_several_is_an_error_that_says_what_would_do(text: str) -> None:
    assert ZONES.find(text) is None


def test_every_packaged_city_is_in_a_zone_that_exists() -> None:
    assert set(ZONES._cities.values()) <= zoneinfo.available_timezones()


async def test_the_time_is_told_with_summer_time() -> None:
    result = await ask(timezone="柏林")
    assert result.value == {
        "datetime": "2025-07-01T14:00:00+02:00",
        "date": "2025-07-01",
        "time": "14:00:00",
        "weekday": "Tuesday",
        "timezone": "Europe/Berlin",
        "utc_offset": "+02:00",
    }


async def test_without_a_zone_it_is_the_users_own() -> None:
    result = await ask(offset=-570)
    assert result.value["time"] == "02:30:00"
    assert result.value["timezone"] == "UTC-09:30"


async def test_an_unknown_zone_is_a_clear_error() -> None:
    result = await ask(timezone="Atlantis")
    assert result.failed
    assert "'Atlantis'" in result.value
    assert "Asia/Shanghai" in result.value
