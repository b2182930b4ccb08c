"""By which ways a device can be told something now."""

from fleet.core.announcement_ways import is_open
from fleet.wire.announcements import WAYS, Way


def ways(*, speaks: bool = False, dialect: str = "xiaozhi", firmware: str = "2.5.1") -> list[Way]:
    return [way for way in WAYS if is_open(way, speaks=speaks, dialect=dialect, firmware=firmware)]


def test_a_device_has_the_ways_of_its_session_its_firmware_and_its_dialect() -> None:
    assert ways() == ["notify", "alert"]
    assert ways(speaks=True) == ["speech", "alert"], "firmware ignores a clip in a session"
    assert ways(firmware="2.4.9") == ways(firmware="") == ["alert"]
    assert ways(dialect="") == ["notify", "alert"]
    assert ways(dialect="registrar") == []
