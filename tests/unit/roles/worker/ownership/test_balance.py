"""The spread of shards, as if every worker looked in turn and all moves were done at once."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.redis.shards.leases import LivingWorker
from fleet.roles.worker.ownership.balance import FRESH_SECONDS, share, should_hand_over


def peers(owned: dict[str, int], age: float = 0.0) -> list[LivingWorker]:
    return [LivingWorker(worker, shards, age) for worker, shards in owned.items()]


def move_one(owned: dict[str, int], giver: str, count: int) -> bool:
    """Let a worker look, and give to whoever owns least, if it wants to; return whether it did."""
    if not should_hand_over(giver, owned[giver], count, peers(owned)):
        return False
    owned[giver] -= 1
    owned[min(owned, key=lambda worker: owned[worker])] += 1
    return True


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 2**32))
def test_any_spread_becomes_even_and_then_stays(numbers: list[int], seed: int) -> None:
    owned = {f"w{number}": shards for number, shards in enumerate(numbers)}
    count, order = sum(numbers), random.Random(seed)
    for _ in range(count + 1):
        if not (givers := [one for one in owned if should_hand_over(one, owned[one], count, peers(owned))]):
            break
        move_one(owned, order.choice(givers), count)
    assert max(owned.values()) - min(owned.values()) <= 1
    assert not any(move_one(owned, giver, count) for giver in owned)


def test_a_newcomer_is_given_its_share_and_nobody_else_anything() -> None:
    owned = {"a": 8, "b": 8, "new": 0}
    moves = 0
    while any(move_one(owned, giver, 16) for giver in ("a", "b", "new")):
        moves += 1
    assert sorted(owned.values()) == [5, 5, 6]
    assert moves <= 6


def test_nothing_is_given_to_one_that_may_be_dead_nor_because_of_it() -> None:
    silent = LivingWorker("dead", 0, FRESH_SECONDS + 0.1)
    assert not should_hand_over("a", 16, 16, [LivingWorker("a", 16, 0.0), silent])
    assert not should_hand_over("a", 8, 16, [LivingWorker("a", 8, 0.0), LivingWorker("b", 8, 0.0), silent])


@pytest.mark.parametrize(("workers", "wanted"), [(0, 16), (1, 16), (2, 8), (3, 6), (16, 1), (40, 1)])
def test_a_share_is_what_everybody_may_have(workers: int, wanted: int) -> None:
    assert share(16, peers({f"w{number}": 0 for number in range(workers)})) == wanted
