from datetime import UTC, datetime

from fleet.roles.api.clock import server_time

WINTER = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_device_is_told_the_time_and_its_own_offset() -> None:
    assert server_time("UTC", "480", WINTER).timestamp == int(WINTER.timestamp() * 1000)
    assert server_time("Europe/Berlin", "480", WINTER).timezone_offset == 60


def test_a_device_without_a_zone_has_the_servers() -> None:
    assert server_time("", "480", WINTER).timezone_offset == 480
    assert server_time("Nowhere", "Europe/Berlin", WINTER).timezone_offset == 60
