"""One timer wheel for all streams of an edge: an asyncio timer or task for each stream costs ten times more."""

import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from fleet.ground.metrics import audio

TICK = 0.010
"""Seconds of a slot: the least time between two packets to one device. Usual frame lengths are multiples of it.

So a stream that began at a tick sends at ticks, without delay. A wake-up costs 60 to 120 us on a virtual machine, more
than many packets: a shorter tick would cost CPU time and save the uplink only a few milliseconds.
"""
SLOTS = 128
"""The wheel's range is about 1.27 s; a timer beyond it fires early and re-arms itself."""
_EXACT = 1e-4
"""Tolerance for rounding errors, as part of a tick: otherwise a time on the grid might count as one just after it."""

_NEXT = 1 - _EXACT
_A_SECOND = 1 / TICK


class TimerOwner(Protocol):
    """Has a timer on the wheel."""

    def on_timer(self, now: float) -> float | None:
        """Do what is due at the tick's time; return when the timer should fire next, or None.

        If the owner itself sets or cancels the timer meanwhile, that counts.
        """


class _Nobody:
    def on_timer(self, now: float) -> None:
        """Do nothing."""


_NOBODY: Final = _Nobody()


class Timer:
    """A timer that may be set on the wheel; only the wheel changes it."""

    __slots__ = ("owner", "tick")

    def __init__(self) -> None:
        self.owner: TimerOwner = _NOBODY
        """Called when it fires. Nobody while it is off: it is a part of its owner, and a circle of both would keep a
        closed session until the garbage collector comes."""
        self.tick = 0
        """Number of the tick at which it fires; 0 while it is off."""


class TimerWheel:
    """Fires timers at the first tick at or after their time.

    Moving a timer leaves its old entry in its slot. An entry fires only if its timer's tick has come.

    Args:
        clock: Returns the time in seconds; timers are set by the same clock.
        wake: Called when a timer is set on an empty wheel.
    """

    def __init__(self, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self.clock = clock
        self._wake = wake
        self._slots: list[list[Timer]] = [[] for _ in range(SLOTS)]
        self._done = 0
        self.pending = 0
        """Timers that are on."""
        self.expected: float | None = None
        """When the next run is due, on the monotonic clock; the metric of lateness is measured against it."""
        self._late = audio.lateness.tally()

    def set(self, timer: Timer, due: float, owner: TimerOwner) -> None:
        """Fire `timer` at `due`, or at the next tick when that has passed; it replaces the timer's earlier time."""
        timer.owner = owner
        if not self.pending:
            # An empty wheel is not run, so it must catch up before it can compare times.
            self._done = max(self._done, tick_of(self.clock()))
        if not timer.tick:
            self.pending += 1
        self._place(timer, due)
        if self.pending == 1:
            self._wake()

    def cancel(self, timer: Timer) -> None:
        if timer.tick:
            timer.tick = 0
            self.pending -= 1
        timer.owner = _NOBODY

    def run(self, now: float) -> None:
        """Fire all timers that are due, with the time of the current tick as `now`.

        A stream that computes its next time from this `now` stays on the grid.
        """
        current, fired = tick_of(now), False
        at = current * TICK
        self._catch_up(current)
        slots = self._slots
        # An owner that sets a timer on the empty wheel lets it catch up meanwhile.
        while self._done < current:
            self._done = tick = self._done + 1
            entries = slots[tick % SLOTS]
            if not entries:
                continue
            slots[tick % SLOTS], fired, beyond, left = [], True, tick + SLOTS, iter(entries)
            timer, failed = entries[0], True
            try:
                for timer in left:
                    if timer.tick != tick:
                        continue
                    due = timer.owner.on_timer(at)
                    if timer.tick != tick:
                        continue
                    if due is None:
                        self.cancel(timer)
                        continue
                    # What `_place` does: nearly every timer goes on within the wheel's range.
                    to = int(due * _A_SECOND + _NEXT)
                    if tick < to < beyond:
                        timer.tick = to
                        slots[to % SLOTS].append(timer)
                    else:
                        self._place(timer, due)
                failed = False
            finally:
                if failed:
                    self._recover(timer, left)
        if fired and self.expected is not None:
            # Not the loop's clock: uvloop does not advance it while the timers fire.
            self._late.observe(max(0.0, time.monotonic() - self.expected))

    def _recover(self, broken: Timer, others: Iterator[Timer]) -> None:
        """Cancel a timer whose owner has failed; those after it fire with the next tick."""
        if broken.tick == self._done:
            self.cancel(broken)
        for timer in others:
            if timer.tick == self._done:
                self._place(timer, 0.0)

    def _catch_up(self, current: int) -> None:
        """Let all timers fire at the current tick if the process stood still for longer than the wheel's range."""
        if current - self._done < SLOTS:
            return
        self._done = current - 1
        timers = [timer for ahead in range(SLOTS) for timer in self._slots[(current + 1 + ahead) % SLOTS]]
        self._slots = [[] for _ in range(SLOTS)]
        for timer in timers:
            if timer.tick:
                timer.tick = current
        self._slots[current % SLOTS] = timers

    def _place(self, timer: Timer, due: float) -> None:
        tick, done = int(due * _A_SECOND + _NEXT), self._done
        if tick <= done:
            tick = done + 1
        elif tick >= done + SLOTS:
            tick = done + SLOTS - 1
        timer.tick = tick
        self._slots[tick % SLOTS].append(timer)


def tick_of(now: float) -> int:
    """Return the number of the latest tick."""
    return int(now * _A_SECOND + _EXACT)
