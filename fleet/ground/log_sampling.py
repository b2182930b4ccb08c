"""What a log leaves out, so that nobody outside can fill the disk with any line.

Messages are constant, so each of them has a budget: so many lines at once, then so many a second. One device or
address has a small part of it, so that one that is loud hides no other. What was left out is counted, and told once a
minute in a line for each message.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

SUMMARY: Final = "log lines left out"
SUMMARY_SECONDS: Final = 60.0
MOST_KEYS: Final = 4096
"""Budgets that are remembered; the one used longest ago is forgotten first, and is whole when it comes back."""
SHARE: Final = 10
"""A device or address has this part of a message's budget."""

left_out: Counter[str] = Counter()
"""How many lines this process left out, under `lines`."""


class Budgets:
    """A token bucket for each key.

    Args:
        per_second: Lines a second of each key.
        burst: Lines at once.
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._interval = 1.0 / per_second
        self._slack = (max(1.0, burst) - 1) * self._interval
        self._due: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def take(self, key: tuple[str, ...], now: float) -> bool:
        """Whether one more line of this key may be written."""
        due = max(self._due.get(key, now), now)
        allowed = due - now <= self._slack
        self._due[key] = due + self._interval if allowed else due
        self._due.move_to_end(key)
        if len(self._due) > MOST_KEYS:
            self._due.popitem(last=False)
        return allowed


class Sampling(logging.Filter):
    """Leaves out lines beyond the budget of their message; debug lines are the operator's own wish and always pass.

    Args:
        per_second: Lines a second of each message.
        burst: Lines at once.
        subject: Returns whom a record is about, a device or an address; empty for none.
        write: Writes a summary.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        per_second: float,
        burst: float,
        subject: Callable[[logging.LogRecord], str],
        write: Callable[[logging.LogRecord], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._messages = Budgets(per_second, burst)
        self._subjects = Budgets(per_second / SHARE, burst / SHARE)
        self._subject = subject
        self._write = write
        self._clock = clock
        self._missing: Counter[tuple[str, ...]] = Counter()
        self._told = clock()

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if self._missing and now - self._told >= SUMMARY_SECONDS:
            self._tell(now)
        if record.levelno < logging.INFO or record.msg == SUMMARY:
            return True
        # Of a library nobody knows whether its messages are constant.
        key = (record.name, str(record.msg)) if record.name.partition(".")[0] == "fleet" else (record.name,)
        subject = self._subject(record)
        if (not subject or self._subjects.take((*key, subject), now)) and self._messages.take(key, now):
            return True
        if not self._missing:
            self._told = now
        self._missing[key] += 1
        left_out["lines"] += 1
        return False

    def _tell(self, now: float) -> None:
        missing, seconds, self._told = self._missing, round(now - self._told), now
        self._missing = Counter()
        for key, lines in missing.items():
            about = {"of": key[-1], "lines": lines, "seconds": seconds}
            record = logging.LogRecord(__name__, logging.WARNING, "", 0, SUMMARY, None, None)
            vars(record).update(about)
            self._write(record)
