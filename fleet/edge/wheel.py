"""One timer wheel for all streams of an edge: a timer or task per stream costs ten times more."""

from collections.abc import Callable

TICK = 0.005
"""Seconds a slot."""
SLOTS = 256
"""Longest wait is about 1.27 s; a timer that wants more is fired early and says its time again."""


class Timer:
    """Something that is to be done again and again.

    Args:
        fire: Takes `now`; returns when it wants to be fired next, or None.
    """

    __slots__ = ("fire", "tick")

    def __init__(self, fire: Callable[[float], float | None]) -> None:
        self.fire = fire
        self.tick = 0
        """Number of the tick at which it fires; 0 while it is off. Belongs to the wheel."""


class Wheel:
    """Fires timers at the first tick at or after their time.

    Moving a timer leaves its old entry behind; an entry counts only while its timer's tick has come.

    Args:
        clock: Returns the time in seconds, the same that timers are set by.
        wake: Called when a timer is set on an empty wheel.
    """

    def __init__(self, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._slots: list[list[Timer]] = [[] for _ in range(SLOTS)]
        self._done = 0
        self.pending = 0
        """Timers that are on."""

    def set(self, timer: Timer, due: float) -> None:
        """Fire `timer` at `due`, or at the next tick when that has passed; it replaces the timer's earlier time."""
        if not self.pending:
            # Nobody turns an empty wheel, so it has to catch up before it can tell near from far.
            self._done = max(self._done, int(self._clock() / TICK))
        tick = min(max(-int(-due // TICK), self._done + 1), self._done + SLOTS - 1)
        if not timer.tick:
            self.pending += 1
        timer.tick = tick
        self._slots[tick % SLOTS].append(timer)
        if self.pending == 1:
            self._wake()

    def cancel(self, timer: Timer) -> None:
        if timer.tick:
            timer.tick = 0
            self.pending -= 1

    def run(self, now: float) -> None:
        """Fire all timers whose time has come."""
        current = int(now / TICK)
        for tick in range(max(self._done + 1, current - SLOTS + 1), current + 1):
            self._done = tick
            if entries := self._slots[tick % SLOTS]:
                self._slots[tick % SLOTS] = []
                self._fire(entries, now)

    def _fire(self, entries: list[Timer], now: float) -> None:
        tick = self._done
        try:
            while entries:
                timer = entries.pop()
                if 0 < timer.tick <= tick:
                    timer.tick = 0
                    self.pending -= 1
                    due = timer.fire(now)
                    if due is not None:
                        self.set(timer, due)
        finally:
            # Only after a failure is something left: it fires when the slot comes round again.
            self._slots[tick % SLOTS].extend(entries)
