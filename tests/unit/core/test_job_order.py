"""The order in which a job takes its devices."""

from itertools import pairwise

from fleet.core.job_order import BUCKET, TIER, JobOrder, end_of_tier, stored_place

FIRST = 0x02_00_00_00_00_00


def test_neighbouring_devices_are_spread_and_jobs_differ() -> None:
    orders = [sorted(range(FIRST, FIRST + 10_000), key=JobOrder.of(job).place) for job in range(1, 20)]
    for order in orders:
        canary = sorted(mac - FIRST for mac in order[:100])
        quarters = [sum(part * 2500 <= one < (part + 1) * 2500 for one in canary) for part in range(4)]
        assert min(quarters) >= 8, quarters
        assert sum(second - first == 1 for first, second in pairwise(canary)) < 20
    assert len({tuple(order[:20]) for order in orders}) == len(orders)


def test_tiers_come_one_after_the_other() -> None:
    order = JobOrder.of(7)
    places = [order.place(FIRST + number, tier) for tier in (0, 1) for number in range(100)]
    assert all(0 <= place - stored_place(place) < BUCKET for place in places)
    assert end_of_tier(0) == stored_place(end_of_tier(0)) + BUCKET - 1, "tiers share no bucket"
    assert max(places[:100]) <= end_of_tier(0) < TIER <= min(places[100:]) <= max(places) <= end_of_tier(1)


def test_a_place_is_a_whole_number_that_never_changes() -> None:
    """SQL does the same arithmetic, and stored jobs go on after an update."""
    order = JobOrder.of(7)
    places = [order.place(FIRST + 1), order.place(FIRST + 1, 2) - 2 * TIER]
    assert places == [1_977_199_611] * 2 and isinstance(places[0], int)
