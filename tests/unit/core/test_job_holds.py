"""Why a device is left alone for now."""

from datetime import UTC, datetime
from typing import NamedTuple

from fleet.core.job_holds import QUIET, Hold, hold_of
from fleet.wire.operator_calls import IN_SESSION, OFFLINE

NOON = round(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp() * 1000)
HOUR = 3_600_000


class Device(NamedTuple):
    online: bool = True
    session: str = ""
    timezone: str = ""


def hold(device: Device, *, idle: bool = True, quiet: str = "") -> Hold | None:
    return hold_of(device, NOON, "UTC", idle=idle, quiet=quiet)


def test_a_device_waits_for_its_connection_the_end_of_its_session_and_of_its_quiet_hours() -> None:
    assert hold(Device()) is None
    assert hold(Device(online=False, session="s")) == Hold(OFFLINE)
    assert hold(Device(session="s")) == Hold(IN_SESSION)
    assert hold(Device(session="s"), idle=False) is None
    assert hold(Device(), quiet="11:00-13:00") == Hold(QUIET, HOUR)
    assert hold(Device(timezone="120"), quiet="11:00-13:00") is None, "it is two o'clock there"
    assert hold(Device(timezone="-60"), quiet="11:00-13:00") == Hold(QUIET, 2 * HOUR)
