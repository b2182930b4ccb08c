"""Shares of places, and what a small job waits beside greedy ones, in virtual time."""

import heapq
from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.shared_places import SharedPlaces

MOST = 500
STEP_MS = 250


def test_who_is_alone_has_half_and_many_have_equal_parts_with_one_left_free() -> None:
    for greedy in range(1, 8):
        fair, held = MOST // (greedy + 1), _turn_over(SharedPlaces(MOST), greedy)
        assert all(abs(count - fair) <= greedy for count in held.values()), (greedy, held)


def test_room_is_what_can_be_taken_one_after_the_other() -> None:
    places = SharedPlaces(MOST)
    for tenant, before in ((1, 0), (2, 30), (3, 100)):
        for number in range(before):
            places.take((tenant, number), tenant, 0)
        room, taken = places.room(tenant, 0), 0
        while places.admit((tenant, 1000 + taken), tenant, 0):
            taken += 1
        assert taken == room


def test_what_others_have_in_a_queue_leaves_less() -> None:
    places = SharedPlaces(MOST)
    places.take((1, 1), 1, 0)
    places.measure({0: 101, 1: MOST + 7})
    assert places.room(2, 0) == 200
    assert places.room(2, 1) == 0


def test_a_place_is_given_back_once_and_counted_again() -> None:
    places = SharedPlaces(4)
    places.take((1, 1), 1, 0)
    places.take((1, 1), 1, 0)
    places.leave((1, 1))
    places.leave((1, 1))
    assert places.room(1, 0) == 2
    places.settle([((1, number), 1, 0) for number in range(2)])
    assert places.room(1, 0) == 0
    assert places.room(2, 0) == 1


@given(
    greedy=st.lists(st.tuples(st.integers(0, 60_000), st.integers(1_000, 60_000)), min_size=1, max_size=5),
    begins=st.integers(0, 120_000),
    devices=st.integers(1, 20),
    queues=st.integers(1, 2),
)
def test_a_small_job_finds_places_at_once_whatever_greedy_tenants_hold(
    greedy: list[tuple[int, int]], begins: int, devices: int, queues: int
) -> None:
    """Each greedy tenant has calls without end, from some time on, and its devices answer none for a while."""
    places, ends = SharedPlaces(MOST), list[tuple[int, tuple[int, int]]]()
    number, left, last = 0, dict.fromkeys(range(queues), devices), 0
    for now in range(0, begins + 120_000, STEP_MS):
        while ends and ends[0][0] <= now:
            places.leave(heapq.heappop(ends)[1])
        for tenant, (since, silence) in enumerate(greedy, 2):
            for queue in range(queues) if now >= since else ():
                while places.room(tenant, queue):
                    number += 1
                    places.take((tenant, number), tenant, queue)
                    heapq.heappush(ends, (now + silence, (tenant, number)))
        for queue in left if now >= begins else ():
            while left[queue] and places.room(1, queue):
                number, left[queue], last = number + 1, left[queue] - 1, now
                places.take((1, number), 1, queue)
                heapq.heappush(ends, (now + 100, (1, number)))
        if now >= begins and not any(left.values()):
            break
    assert not any(left.values())
    # A place that a small job had is free again in the next step.
    assert last - begins <= STEP_MS * 10


def _turn_over(places: SharedPlaces, greedy: int) -> Mapping[int, int]:
    """Let tenants take all they may, and calls end and others begin; return how many places each one has."""
    held: dict[int, list[tuple[int, int]]] = {tenant: [] for tenant in range(greedy)}
    for number in range(MOST * 4):
        for tenant, mine in held.items():
            while places.room(tenant, 0):
                mine.append((number * MOST + len(mine), tenant))
                places.take(mine[-1], tenant, 0)
        for mine in held.values():
            places.leave(mine.pop(0))
    return Counter({tenant: len(mine) for tenant, mine in held.items()})
