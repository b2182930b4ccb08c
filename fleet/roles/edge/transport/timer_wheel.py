"""One timer wheel for all streams of an edge: an asyncio timer or task for each stream costs ten times more."""

import time
from collections.abc import Callable
from typing import Protocol

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


class TimerOwner(Protocol):
    """Has a timer on the wheel."""

    def on_timer(self, now: float) -> float | None:
        """Do what is due at the tick's time; return when the timer should fire next, or None."""


class Timer:
    """A timer that may be set on the wheel; only the wheel changes it."""

    __slots__ = ("owner", "tick")

    def __init__(self) -> None:
        self.owner: TimerOwner | None = None
        """Called when it fires. None while it is off: it is a part of its owner, and a circle of both would keep a
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
        timer.owner = None

    def run(self, now: float) -> None:
        """Fire all timers that are due, with the time of the current tick as `now`.

        A stream that computes its next time from this `now` stays on the grid.
        """
        current, fired = tick_of(now), False
        at, slots = current * TICK, self._slots
        for tick in range(max(self._done + 1, current - SLOTS + 1), current + 1):
            self._done = tick
            entries = slots[tick % SLOTS]
            if not entries:
                continue
            slots[tick % SLOTS], fired, beyond, left = [], True, tick + SLOTS, iter(entries)
            timer, failed = entries[0], True
            try:
                for timer in left:
                    owner, was = timer.owner, timer.tick
                    if owner is None or was > tick:
                        continue
                    due = owner.on_timer(at)
                    if due is not None and timer.tick == was:
                        # Nearly every timer goes on.
                        to = int(due / TICK + _NEXT)
                        if tick < to < beyond:
                            timer.tick = to
                            slots[to % SLOTS].append(timer)
                            continue
                    self._go_on(timer, owner, was, due)
                failed = False
            finally:
                if failed and timer.tick <= tick:
                    self.cancel(timer)
                # After a failure others are left: they fire with the next tick.
                slots[(tick + 1) % SLOTS].extend(left)
        if fired and self.expected is not None:
            # Not the loop's clock: uvloop does not advance it while the timers fire.
            self._late.observe(max(0.0, time.monotonic() - self.expected))

    def _go_on(self, timer: Timer, owner: TimerOwner, was: int, due: float | None) -> None:
        """Set a timer that has fired at the tick `was`, or end it. Its owner may have set or cancelled it meanwhile."""
        if due is not None:
            self.pending += not timer.tick
            timer.owner = owner
            self._place(timer, due)
        elif timer.tick == was:
            self.cancel(timer)

    def _place(self, timer: Timer, due: float) -> None:
        tick, done = int(due / TICK + _NEXT), self._done
        if tick <= done:
            tick = done + 1
        elif tick >= done + SLOTS:
            tick = done + SLOTS - 1
        timer.tick = tick
        self._slots[tick % SLOTS].append(timer)


def tick_of(now: float) -> int:
    """Return the number of the latest tick."""
    return int(now / TICK + _EXACT)
