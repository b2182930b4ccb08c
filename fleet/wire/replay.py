"""The uplink sequence numbers that a session has used: each counts once."""

from bisect import bisect_right
from typing import Final

MOST_SPANS: Final = 64
"""Spans of consecutive numbers that are kept. With more, the oldest gap is closed: its numbers count as used."""


class UsedNumbers:
    """Remembers used sequence numbers as spans, at most `MOST_SPANS`. Number 0 is never sent and counts as used."""

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
        self._merge_if_adjacent(at)
        self._merge_if_adjacent(at - 1)
        if len(self._firsts) > MOST_SPANS:
            self._merge_with_next(0)

    def extend(self, newest: int) -> None:
        """Mark all numbers from the one after `self.newest` up to this one."""
        self._lasts[-1] = self.newest = newest

    def _merge_if_adjacent(self, at: int) -> None:
        if at + 1 < len(self._firsts) and self._lasts[at] + 1 == self._firsts[at + 1]:
            self._merge_with_next(at)

    def _merge_with_next(self, at: int) -> None:
        """Merge a span with the next one; the numbers between them count as used from now on."""
        del self._firsts[at + 1]
        del self._lasts[at]
