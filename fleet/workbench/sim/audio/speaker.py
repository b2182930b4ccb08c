"""The decode queue and the loudspeaker behind it, as a model over time: no clock, no decoding.

Stricter than firmware by up to four packets: it has room for two decoded packets and those in flight beyond the queue.
"""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Played:
    """A packet whose first sample sounds at `at`."""

    at: float
    packet: bytes
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Silence inside an answer: the queue was dry for so many seconds from `at` on, which is heard `dma` later."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Queued:
    arrived: float
    packet: bytes
    seconds: float
    timestamp: int


class Speaker:
    """Packets go in when they arrive and come out when they sound; a full queue drops what comes (contract 4.3).

    Args:
        capacity: Packets that wait at most, whatever they last.
        dma: Seconds from handing sound over to hearing it: the DMA buffers in front of the loudspeaker.
    """

    def __init__(self, capacity: int = 40, dma: float = 0.0) -> None:
        self._capacity = capacity
        self._dma = dma
        self._queue: deque[_Queued] = deque()
        self._played: list[Played] = []
        self._gaps: list[Gap] = []
        self._in_answer = False
        self.busy_until: float | None = None
        """When the newest packet that was begun is handed over; it is heard `dma` later. None before the first."""

    @property
    def depth(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        return len(self._queue) >= self._capacity

    def due(self, now: float) -> float | None:
        """Return when the current packet is handed over, or None when there is none."""
        return None if self.idle(now) else self.busy_until

    def idle(self, now: float) -> bool:
        """Advance to `now`; return whether everything is handed over, which firmware takes for the end of playback."""
        self.advance(now)
        return not self._queue and (self.busy_until is None or self.busy_until <= now)

    def push(self, packet: bytes, seconds: float, now: float, timestamp: int = 0) -> bool:
        """Queue a packet that lasts so many seconds; return False when it was dropped."""
        self.advance(now)
        if self.full:
            return False
        if self._in_answer and not self._queue and self.busy_until is not None and self.busy_until < now:
            self._gaps.append(Gap(self.busy_until, now - self.busy_until))
        self._in_answer = True
        self._queue.append(_Queued(now, packet, seconds, timestamp))
        self.advance(now)
        return True

    def clear(self) -> int:
        """Drop what waits, not what sounds, and begin a new answer; return how many packets that were."""
        dropped = len(self._queue)
        self._queue.clear()
        self._in_answer = False
        return dropped

    def end_answer(self) -> None:
        """Silence after this is no gap."""
        self._in_answer = False

    def take(self, now: float) -> list[Played]:
        """Return what began to sound since the last time."""
        self.advance(now)
        played, self._played = self._played, []
        return played

    def take_gaps(self) -> list[Gap]:
        gaps, self._gaps = self._gaps, []
        return gaps

    def advance(self, now: float) -> None:
        """Begin the packets that sound by `now`."""
        while self._queue and (self.busy_until is None or self.busy_until <= now):
            head = self._queue.popleft()
            start = head.arrived if self.busy_until is None else max(self.busy_until, head.arrived)
            self._played.append(Played(start + self._dma, head.packet, head.timestamp))
            self.busy_until = start + head.seconds
