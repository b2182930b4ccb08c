"""Time zones: of a device, of the server, of this machine."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal

_MINUTES = re.compile(r"[+-]?\d{1,3}", re.ASCII)
_FURTHEST = 14 * 60


def offset(timezone: str, now: datetime) -> int | None:
    """Return how many minutes east of UTC a time zone is now; None if the text is not a time zone.

    Args:
        timezone: An IANA name such as `Europe/Berlin`, or minutes such as `-210`.
        now: With its zone.
    """
    if _MINUTES.fullmatch(timezone):
        minutes = int(timezone)
        return minutes if abs(minutes) <= _FURTHEST else None
    try:
        found = now.astimezone(ZoneInfo(timezone)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return None if found is None else int(found.total_seconds() // 60)


def own_offset(timezone: str, default: str, now: datetime) -> int:
    """Return the minutes of a device's own time zone, or of the server's where that is empty or unknown."""
    own = offset(timezone, now) if timezone else None
    return own if own is not None else offset(default, now) or 0


def own_zone(timezone: str, default: str) -> tzinfo:
    """Return a device's own time zone, with its clock changes, or the server's where that is empty or unknown."""
    found = (_zone(name) for name in (timezone, default) if name)
    return next((zone for zone in found if zone is not None), UTC)


def _zone(timezone: str) -> tzinfo | None:
    if _MINUTES.fullmatch(timezone):
        minutes = int(timezone)
        return fixed_zone(timedelta(minutes=minutes)) if abs(minutes) <= _FURTHEST else None
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def machine_zone() -> str:
    """Return the name of this machine's time zone, or its present minutes where it has no name (`TZ=XYZ-8`)."""
    now = datetime.now().astimezone()
    minutes = int((now.utcoffset() or timedelta()).total_seconds() // 60)
    try:
        name = tzlocal.get_localzone_name() or ""
    except (LookupError, ValueError, OSError):
        name = ""
    # tzlocal ignores a TZ that it cannot name, and returns the system's zone.
    return name if offset(name, now) == minutes else str(minutes)
