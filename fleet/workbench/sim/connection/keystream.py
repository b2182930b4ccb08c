"""The counter blocks that a key was used for: AES-CTR protects nothing once a block is used twice."""

from bisect import bisect_left, bisect_right

_BLOCK = 16
_MOST = 200_000
"""Ranges remembered a direction; the oldest counters are forgotten beyond (hours of one session)."""


class Ranges:
    """A set of whole numbers kept as ranges; touching ranges are one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._starts)

    def meets(self, start: int, end: int) -> bool:
        """Return whether any number from `start` up to but without `end` is in the set."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end

    def add(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        if len(self._starts) > _MOST:
            del self._starts[0], self._ends[0]


class Keystream:
    """The blocks of one key, used upwards and downwards.

    Firmware's own uplink overlaps itself by design (contract 4.6), so only what the server causes is a breach.
    """

    def __init__(self) -> None:
        self._up = Ranges()
        self._down = Ranges()

    def send(self, header: bytes, length: int) -> bool:
        """Record an uplink packet; return whether it meets a downlink packet."""
        start, end = _blocks(header, length)
        self._up.add(start, end)
        return self._down.meets(start, end)

    def receive(self, header: bytes, length: int) -> bool:
        """Record a downlink packet; return whether it meets any packet before it."""
        start, end = _blocks(header, length)
        meets = self._down.meets(start, end) or self._up.meets(start, end)
        self._down.add(start, end)
        return meets


def _blocks(header: bytes, length: int) -> tuple[int, int]:
    start = int.from_bytes(header, "big")
    return start, start + -(-length // _BLOCK)
