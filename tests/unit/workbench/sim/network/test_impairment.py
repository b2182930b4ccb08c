import random
from itertools import pairwise

from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.network.impairment import Arrival, Impairment
from fleet.workbench.sim.network.latency import Latency

COUNT = 20_000


def carried(air: Impairment, count: int = COUNT) -> list[list[Arrival]]:
    return [list(air.carry(number * 0.06)) for number in range(count)]


def share(of: list[list[Arrival]], number: int) -> float:
    return sum(len(copies) == number for copies in of) / len(of)


def test_a_calm_network_carries_everything_at_once() -> None:
    air = Impairment(Faults(), random.Random(1))
    assert air.calm
    assert list(air.carry(0.0)) == [Arrival(0.0)]


def test_shares_are_kept() -> None:
    fates = carried(Impairment(Faults(loss=0.05, reorder=0.02, duplicate=0.1), random.Random(1)))
    assert 0.045 < share(fates, 0) < 0.055
    assert 0.085 < share(fates, 2) < 0.105
    late = sum(copies[0].late for copies in fates if copies) / COUNT
    assert 0.016 < late < 0.023
    assert all(0.07 <= copies[0].delay <= 0.13 for copies in fates if copies and copies[0].late)


def test_the_same_dice_do_the_same() -> None:
    faults = Faults(loss=0.2, duplicate=0.2, reorder=0.2)
    assert carried(Impairment(faults, random.Random(7)), 200) == carried(Impairment(faults, random.Random(7)), 200)
    assert carried(Impairment(faults, random.Random(7)), 200) != carried(Impairment(faults, random.Random(8)), 200)


def test_a_mobile_network_delays_by_half_the_round_trip_and_wanders() -> None:
    chance = random.Random(3)
    latency = Latency((0.15, 0.4), chance)
    delays = [latency.delay(number * 0.06) for number in range(20_000)]
    assert min(delays) >= 0.075
    assert max(delays) <= 0.2
    assert max(delays) - min(delays) > 0.1
    steps = [abs(after - before) for before, after in pairwise(delays)]
    assert max(steps) < 0.03, "it wanders, and does not jump"
    assert 0.12 < latency.spread < 0.13


def test_packets_60_ms_apart_seldom_overtake_each_other_and_bursts_may() -> None:
    latency = Latency((0.15, 0.4), random.Random(3))
    due = [number * 0.06 + latency.delay(number * 0.06) for number in range(5000)]
    assert due == sorted(due)
    burst = [number * 0.001 + latency.delay(400 + number * 0.001) for number in range(33)]
    assert burst != sorted(burst)


def test_a_pause_does_not_matter_to_the_delay() -> None:
    latency = Latency((0.15, 0.4), random.Random(3))
    latency.delay(0.0)
    assert 0.075 <= latency.delay(1e7) <= 0.2
