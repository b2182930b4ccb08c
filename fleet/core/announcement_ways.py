"""By which ways a device can be told something now."""

from typing import assert_never

from fleet.wire import dialects, notify
from fleet.wire.announcements import Way


def is_open(way: Way, *, speaks: bool, dialect: str, firmware: str) -> bool:
    """Return whether a connected device can be told by a way now, as far as the device itself decides it.

    Args:
        way: The way.
        speaks: Whether the device is in a session in which it can speak.
        dialect: Its dialect, empty if unknown.
        firmware: Its version, empty if unknown.
    """
    capabilities = dialects.find(dialect).capabilities
    match way:
        case "speech":
            return speaks
        case "notify":
            return not speaks and capabilities.notifications and notify.is_known(firmware)
        case "alert":
            return capabilities.text == "alert"
        case "wake":
            return False
        case _:
            assert_never(way)
