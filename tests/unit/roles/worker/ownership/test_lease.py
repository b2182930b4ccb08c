import math

from fleet.adapters.redis.shards.owner import Owner
from fleet.roles.worker.ownership.lease import SAFETY, Lease

OWNER = Owner("w", "1")


class Hands:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_is_held_for_less_than_it_lasts() -> None:
    clock = Hands()
    lease = Lease(OWNER, 99.0, 10.0, clock)
    assert 0 < lease.left < 10 - 1
    clock.now = 99.0 + 10 * SAFETY
    assert not lease.held
    lease.extend(clock.now)
    assert lease.held


def test_a_late_answer_to_an_early_request_takes_nothing_away() -> None:
    lease = Lease(OWNER, 100.0, 10.0, Hands())
    left = lease.left
    lease.extend(90.0)
    assert lease.left == left


def test_what_was_given_up_stays_so() -> None:
    lease = Lease(OWNER, 100.0, math.inf, Hands())
    assert lease.held
    lease.end()
    lease.extend(100.0)
    assert not lease.held and lease.left == 0
