"""The faults of a chaos run: repeatable, spread, and of every kind."""

from tests.chaos.plan import POINTS, draw


def test_the_same_seed_gives_the_same_plan() -> None:
    assert draw(7, 40, 400) == draw(7, 40, 400)
    assert draw(7, 40, 400) != draw(8, 40, 400)


def test_faults_come_in_their_order_and_within_the_run() -> None:
    moments = [fault.after for fault in draw(3, 100, 1000)]
    assert moments == sorted(moments)
    assert moments[0] >= 0 and moments[-1] < 1000


def test_a_long_run_strikes_at_every_point_and_everything_in_every_way() -> None:
    plan = draw(1, 100, 1000)
    assert {fault.point for fault in plan} >= set(POINTS)
    struck = {(fault.target, fault.how) for fault in plan}
    assert struck == {
        (target, how) for target in ("worker", "edge", "broker", "redis") for how in ("kill", "freeze", "restart")
    }


def test_a_short_run_kills_each_kind_of_process() -> None:
    killed = {fault.target for fault in draw(5, 8, 60) if fault.how == "kill"}
    assert killed == {"worker", "edge", "broker", "redis"}


def test_a_fault_says_what_it_is() -> None:
    fault = next(fault for fault in draw(1, 100, 1000) if fault.point)
    assert fault.point in str(fault)
    assert f"after {fault.after} turns" in str(fault)
