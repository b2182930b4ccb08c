import itertools
from collections.abc import Callable

import pytest

from fleet.roles.edge.transport.timer_wheel import SLOTS, TICK, Timer, TimerWheel


class Owner:
    """Has one timer, and does what the test says when it fires."""

    def __init__(self, fire: Callable[[float], float | None]) -> None:
        self.on_timer = fire
        self.timer = Timer()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.woken = 0
        self.wheel = TimerWheel(lambda: self.now, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def set(self, owner: Owner, due: float) -> None:
        self.wheel.set(owner.timer, due, owner)

    def turn(self, seconds: float) -> None:
        """Tick on for so long."""
        for _ in range(round(seconds / TICK)):
            self.now += TICK
            self.wheel.run(self.now)


def test_timer_fires_at_its_time_and_never_before() -> None:
    clock, fired = Clock(), []
    clock.set(Owner(fired.append), clock.now + 0.1)
    clock.turn(0.09)
    assert not fired
    clock.turn(0.02)
    assert fired and fired[0] >= 1000.1 - 1e-6
    clock.turn(3)
    assert len(fired) == 1
    assert clock.wheel.pending == 0


def test_timer_that_returns_a_time_fires_again() -> None:
    clock, fired = Clock(), []

    def fire(now: float) -> float | None:
        fired.append(now)
        return now + 0.06 if len(fired) < 5 else None

    clock.set(Owner(fire), clock.now)
    clock.turn(1)
    assert len(fired) == 5
    assert all(0.06 - 1e-6 <= later - earlier <= 0.06 + 2 * TICK for earlier, later in itertools.pairwise(fired))


def test_moved_timer_fires_once_at_its_new_time() -> None:
    clock, fired = Clock(), []
    owner = Owner(fired.append)
    clock.set(owner, clock.now + 0.5)
    clock.set(owner, clock.now + 0.1)
    clock.set(owner, clock.now + 0.1)
    clock.turn(3)
    assert len(fired) == 1
    assert fired[0] < 1000.2
    clock.set(owner, clock.now + 0.1)
    clock.set(owner, clock.now + 0.5)
    clock.turn(0.3)
    assert len(fired) == 1
    clock.turn(0.3)
    assert len(fired) == 2


def test_cancelled_timer_does_not_fire() -> None:
    clock, fired = Clock(), []
    owner = Owner(fired.append)
    clock.set(owner, clock.now + 0.1)
    clock.wheel.cancel(owner.timer)
    clock.wheel.cancel(owner.timer)
    assert clock.wheel.pending == 0
    clock.turn(1)
    assert not fired


def test_stalled_loop_loses_no_timer() -> None:
    clock, fired = Clock(), []
    for number in range(300):
        clock.set(Owner(fired.append), clock.now + number * TICK)
    clock.now += 10
    clock.wheel.run(clock.now)
    assert len(fired) == 300


def test_distant_timer_fires_early_rather_than_never() -> None:
    clock, fired = Clock(), []
    clock.set(Owner(fired.append), clock.now + 60)
    clock.turn((SLOTS + 2) * TICK)
    assert len(fired) == 1


def test_wheel_that_stood_still_knows_the_time() -> None:
    clock, fired = Clock(), []
    clock.now += 5000
    clock.set(Owner(fired.append), clock.now + 0.1)
    clock.turn(0.05)
    assert not fired
    assert clock.woken == 1


def test_broken_timer_costs_the_others_only_a_tick() -> None:
    clock, fired = Clock(), []

    def fail(now: float) -> None:
        raise ValueError

    for fire in (fired.append, fail, fired.append):
        clock.set(Owner(fire), clock.now)
    clock.now += TICK
    with pytest.raises(ValueError):
        clock.wheel.run(clock.now)
    clock.turn(TICK)
    assert len(fired) == 2
    assert clock.wheel.pending == 0


def test_times_on_the_grid_are_met_at_their_tick_for_hours() -> None:
    clock, fired = Clock(), []

    def fire(now: float) -> float:
        fired.append(now)
        return now + 0.06

    clock.set(Owner(fire), clock.now)
    first = round(clock.now / TICK) + 1
    for tick in range(first, first + 60_000):
        clock.wheel.run(tick * TICK + 0.003)
    assert len(fired) == 10_000
    assert all(later - earlier < 0.061 for earlier, later in itertools.pairwise(fired))


def test_timers_are_told_the_time_of_the_tick() -> None:
    clock, fired = Clock(), []
    clock.set(Owner(fired.append), clock.now)
    clock.wheel.run(1000.0 + 7.4 * TICK)
    assert fired == [pytest.approx(1000.0 + 7 * TICK)]


def test_timer_that_sets_itself_while_it_fires_is_on_once_at_the_time_that_it_set() -> None:
    clock = Clock()
    fired = list[float]()

    def fire(now: float) -> float | None:
        fired.append(now)
        if len(fired) > 1:
            return None
        clock.set(owner, now + 0.05)
        return now + 0.03

    owner = Owner(fire)
    clock.set(owner, clock.now)
    clock.turn(TICK)
    assert clock.wheel.pending == 1
    clock.turn(1)
    assert len(fired) == 2 and fired[1] - fired[0] == pytest.approx(0.05, abs=TICK)
    assert clock.wheel.pending == 0


def test_a_timer_that_is_off_does_not_know_its_owner() -> None:
    clock, fired = Clock(), []
    once, cancelled = Owner(fired.append), Owner(fired.append)
    for owner in (once, cancelled):
        clock.set(owner, clock.now + 0.1)
        assert owner.timer.owner is owner
    clock.wheel.cancel(cancelled.timer)
    clock.turn(1)
    assert len(fired) == 1
    assert once.timer.owner is not once and cancelled.timer.owner is not cancelled


def test_a_timer_that_is_cancelled_while_it_fires_stays_off() -> None:
    clock, fired = Clock(), []

    def fire(now: float) -> float:
        fired.append(now)
        clock.wheel.cancel(owner.timer)
        return now + 0.03

    owner = Owner(fire)
    clock.set(owner, clock.now)
    clock.turn(1)
    assert (len(fired), clock.wheel.pending) == (1, 0)


@pytest.mark.parametrize("slow", [0.02, 0.5, 1.4])
def test_what_a_slow_owner_sets_on_an_empty_wheel_in_a_late_tick_fires_at_its_time(slow: float) -> None:
    clock, fired = Clock(), list[float]()
    later = Owner(fired.append)

    def fire(now: float) -> None:
        clock.wheel.cancel(owner.timer)
        clock.now += slow
        clock.set(later, clock.now + 1.26)

    owner = Owner(fire)
    clock.set(owner, clock.now)
    clock.now += 5 * TICK
    clock.wheel.run(clock.now)
    due = clock.now + 1.26
    clock.turn(3)
    assert fired == [pytest.approx(due, abs=TICK)]
    assert clock.wheel.pending == 0
