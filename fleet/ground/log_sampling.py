"""Rate limits of log lines, so that no client can fill the disk.

Messages are constant, so each message has a token bucket. A device or address may use only a part of it, so that one
device cannot suppress the lines of others. Dropped lines are counted, and a summary line for each message is written
once a minute.
"""

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final

SUMMARY: Final = "log lines left out"
SUMMARY_SECONDS: Final = 60.0
MOST_KEYS: Final = 4096
"""Most buckets in memory; the least recently used one is dropped first, and is full when it is made again."""
SHARE: Final = 10
"""A device or address may use one SHARE-th of a message's rate."""

left_out: Counter[str] = Counter()
"""Lines that this process dropped, under the key `lines`."""


class TokenBuckets:
    """A token bucket for each key.

    Args:
        per_second: Lines a second for each key.
        burst: Lines at once.
    """

    def __init__(self, per_second: float, burst: float) -> None:
        self._interval = 1.0 / per_second
        self._slack = (max(1.0, burst) - 1) * self._interval
        self._due: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def is_empty(self, key: tuple[str, ...], now: float) -> bool:
        """Return whether `take` would refuse."""
        return self._due.get(key, now) - now > self._slack

    def take(self, key: tuple[str, ...], now: float) -> bool:
        """Take a token; return whether one more line of this key may be written."""
        due = max(self._due.get(key, now), now)
        allowed = due - now <= self._slack
        self._due[key] = due + self._interval if allowed else due
        self._due.move_to_end(key)
        if len(self._due) > MOST_KEYS:
            self._due.popitem(last=False)
        return allowed


class Sampling(logging.Filter):
    """Drops lines beyond the rate of their message. Debug lines always pass: the operator has asked for them.

    Args:
        per_second: Lines a second for each message.
        burst: Lines at once.
        subject: Returns the device or the address of a record; empty if it has none.
        write: Writes a summary record.
        clock: A monotonic clock, in seconds.
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
        self._messages = TokenBuckets(per_second, burst)
        self._subjects = TokenBuckets(per_second / SHARE, burst / SHARE)
        self._subject = subject
        self._write = write
        self._clock = clock
        self._dropped: Counter[tuple[str, ...]] = Counter()
        self._summary_at = clock()

    def leaves_out(self, name: str, message: str) -> bool:
        """Return whether `filter` would drop a line of level INFO or above, and count it then."""
        key, now = (name, message), self._clock()
        if not self._messages.is_empty(key, now):
            return False
        if now - self._summary_at >= SUMMARY_SECONDS:
            self._summarise(now)
        self._drop(key, now)
        return True

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        self._summarise(now)
        if record.levelno < logging.INFO or record.msg == SUMMARY:
            return True
        # Messages of libraries may not be constant, so a library has one bucket for all of them.
        key = (record.name, str(record.msg)) if record.name.partition(".")[0] == "fleet" else (record.name,)
        subject = self._subject(record)
        if (not subject or self._subjects.take((*key, subject), now)) and self._messages.take(key, now):
            return True
        self._drop(key, now)
        return False

    def _drop(self, key: tuple[str, ...], now: float) -> None:
        if not self._dropped:
            self._summary_at = now
        self._dropped[key] += 1
        left_out["lines"] += 1

    def _summarise(self, now: float) -> None:
        if self._dropped and now - self._summary_at >= SUMMARY_SECONDS:
            self._write_summary(now)

    def _write_summary(self, now: float) -> None:
        dropped, seconds, self._summary_at = self._dropped, round(now - self._summary_at), now
        self._dropped = Counter()
        for key, lines in dropped.items():
            about = {"of": key[-1], "lines": lines, "seconds": seconds}
            record = logging.LogRecord(__name__, logging.WARNING, "", 0, SUMMARY, None, None)
            vars(record).update(about)
            self._write(record)


class SampledLogger(logging.Logger):
    """Makes no record of an INFO line that `Sampling` drops for its message: a record costs more than the decision."""

    sampling: Sampling | None = None
    """Of the process."""

    def info(self, msg: object, *args: object, **named: Any) -> None:
        if self.isEnabledFor(logging.INFO):
            if self.sampling is not None and self.sampling.leaves_out(self.name, str(msg)):
                return
            self._log(logging.INFO, msg, args, **named)

    @classmethod
    def adopt(cls, sampling: Sampling | None) -> None:
        """Let the loggers of fleet that exist now ask `sampling`; those of modules imported later make all records."""
        cls.sampling = sampling
        for name, logger in logging.root.manager.loggerDict.items():
            if name.startswith("fleet.") and type(logger) is logging.Logger:
                logger.__class__ = cls
