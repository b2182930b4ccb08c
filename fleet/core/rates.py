"""Rate limits: token buckets for a bounded number of keys."""

import re
from collections import OrderedDict
from dataclasses import dataclass

MOST_KEYS = 65_536
"""Bound of the buckets kept at a time; one takes about 150 bytes."""

_ROUNDING = 1e-6
_FORM = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)/(\d{1,7})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    """A sustained rate (above 0) and a burst (at least 1), in tokens."""

    per_second: float
    burst: int

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Read `PER_SECOND/BURST`, such as `0.5/10`.

        Raises:
            ValueError: The text does not have this form, or a number is 0.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or not float(found[1]) or not int(found[2]):
            raise ValueError(f"{text!r} is not PER_SECOND/BURST, such as 0.5/10, both above 0")
        return cls(float(found[1]), int(found[2]))


class Buckets:
    """One token bucket for each key, stored as the time at which the bucket will be full.

    When there are too many keys, the least recently used one is dropped and begins again with a full bucket. A client
    that invents keys neither resets a key in use nor takes tokens from others.

    Args:
        rate: The rate of each key.
        most: Bound of the buckets kept at a time.
    """

    def __init__(self, rate: Rate, most: int = MOST_KEYS) -> None:
        self._interval = 1.0 / rate.per_second
        self._slack = (rate.burst - 1) * self._interval
        """A bucket that will be full within this time still has a token."""
        self._most = most
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """The time at which each bucket will be full, on the clock of `now`."""

    def __len__(self) -> int:
        return len(self._full_at)

    def left(self, key: str, now: float) -> int:
        """Return how many tokens a key's bucket has."""
        return int((self._slack - max(self._full_at.get(key, now) - now, 0.0)) / self._interval + 1 + _ROUNDING)

    def take(self, key: str, now: float, cost: int = 1) -> float:
        """Take `cost` tokens from a key's bucket; return 0, or the seconds until there are enough.

        In the second case nothing is taken. A cost above the burst never succeeds.
        """
        full_at = max(self._full_at.get(key, now), now)
        wait = (full_at - now) + (cost - 1) * self._interval - self._slack
        wait = 0.0 if wait <= _ROUNDING * self._interval else wait
        self._full_at[key] = full_at if wait else full_at + cost * self._interval
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return wait

    def give_back(self, key: str, now: float) -> None:
        """Put one token back that was taken."""
        if key in self._full_at:
            self._full_at[key] = max(self._full_at[key] - self._interval, now)
