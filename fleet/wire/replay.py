"""The uplink sequence numbers that a session has used: each counts once."""

from bisect import bisect_right
from typing import Final

MOST_SPANS: Final = 64
"""Spans of consecutive numbers that are kept; beyond that the oldest gap counts as used."""


class UsedNumbers:
    """Remembers used sequence numbers as spans. Its size never grows; number 0 is never sent and counts as used."""

    __slots__ = ("_firsts", "_lasts", "newest")

    def __init__(self) -> None:
        # The first span always begins with 0: all numbers below its end count as used.
        self._firsts, self._lasts = [0], [0]
        self.newest = 0
        """The highest used number."""

    def __contains__(self, number: int) -> bool:
        return number <= self.newest and number <= self._lasts[bisect_right(self._firsts, number) - 1]

    def add(self, number: int) -> None:
        """Mark a number that is not used yet."""
        if number == self.newest + 1:
            self._lasts[-1] = self.newest = number
            return
        at = bisect_right(self._firsts, number)
        self._firsts.insert(at, number)
        self._lasts.insert(at, number)
        self.newest = max(self.newest, number)
        self._join(at)
        self._join(at - 1)
        if len(self._firsts) > MOST_SPANS:
            self._forget(0)

    def _join(self, at: int) -> None:
        if at + 1 < len(self._firsts) and self._lasts[at] + 1 == self._firsts[at + 1]:
            self._forget(at)

    def _forget(self, at: int) -> None:
        """Make one span of this one and the next."""
        del self._firsts[at + 1]
        del self._lasts[at]
