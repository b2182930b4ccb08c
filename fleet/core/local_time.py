"""The local time of a device."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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


def own_offset(timezone: str, default: int, now: datetime) -> int:
    """Return the minutes of a device's own time zone, or the default where that is empty or unknown."""
    own = offset(timezone, now) if timezone else None
    return default if own is None else own
