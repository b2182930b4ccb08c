"""Hours of the day in which a device is left alone."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one minute of the day to another; over midnight if the second is smaller."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> "QuietHours":
        """Read `22:00-07:00`.

        Raises:
            ValueError: It has another form, or no length.
        """
        found = _FORM.fullmatch(text)
        if found is None or found[1] + found[2] == found[3] + found[4]:
            raise ValueError("quiet hours are HH:MM-HH:MM, such as 22:00-07:00")
        hour, minute, end_hour, end_minute = map(int, found.groups())
        return cls(hour * 60 + minute, end_hour * 60 + end_minute)

    def left(self, utc_ms: int, offset: int) -> int:
        """Return how many ms of the quiet hours are left, 0 outside of them.

        Where clocks change meanwhile, this may be an hour off: look again then.

        Args:
            utc_ms: The time, in ms since 1970.
            offset: Minutes east of UTC.
        """
        at = (utc_ms + offset * 60_000) % (_DAY * 60_000)
        length = (self.end - self.begin) % _DAY * 60_000
        passed = (at - self.begin * 60_000) % (_DAY * 60_000)
        return length - passed if passed < length else 0
