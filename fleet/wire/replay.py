"""The window that admits each uplink sequence number once."""

from typing import Literal

Verdict = Literal["new", "late", "duplicate", "old", "jump"]

WIDTH = 64
"""Sequence numbers behind the newest that may still arrive out of order."""
LARGEST_JUMP = 3000
"""Largest step forward (three minutes of 60 ms frames): without a bound one forged packet would mute the device."""
_ALL = (1 << WIDTH) - 1


class ReplayWindow:
    """Remembers which of the newest 64 sequence numbers were seen; its size never grows."""

    __slots__ = ("_newest", "_seen")

    def __init__(self) -> None:
        self._newest = 0
        self._seen = 0

    @property
    def newest(self) -> int:
        """The highest sequence number so far: how many packets a device has sent that began with 1."""
        return self._newest

    def check(self, sequence: int) -> Verdict:
        """Say what a sequence number is, without recording it: `new` and `late` may pass, the others not."""
        step = sequence - self._newest
        if step > 0:
            return "new" if step <= LARGEST_JUMP else "jump"
        if step <= -WIDTH or sequence <= 0:
            return "old"
        return "duplicate" if self._seen >> -step & 1 else "late"

    def record(self, sequence: int) -> None:
        """Record a sequence number that `check` let pass and that proved to be audio."""
        step = sequence - self._newest
        if step > 0:
            self._seen = (self._seen << step | 1) & _ALL if step < WIDTH else 1
            self._newest = sequence
        else:
            self._seen |= 1 << -step
