from collections import Counter

import pytest

from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.endurance import EnduranceReport, _report, _Tally, endure
from fleet.workbench.conformance.verdict import NotApplicable
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import find_profile

P1 = find_profile("P1")


def report(**changes: object) -> EnduranceReport:
    tally = _Tally(
        turns=Counter(answered=100),
        latencies=[float(number) for number in range(100, 0, -1)],
        counters=Counter(uplink_lost=5, downlink_lost=7, downlink_received=900, gaps=3, gaps_ms=180),
        completed=33,
    )
    for name, value in changes.items():
        setattr(tally, name, value)
    return _report(["P1"], 33, tally)


def test_times_are_told_by_their_rank() -> None:
    found = report()
    assert (found.p50, found.p99, found.slowest) == (51.0, 99.0, 100.0)
    assert (found.turns, found.answered, found.lost, found.ok) == (100, 100, 12, True)


def test_gaps_in_what_was_heard_are_told_with_their_length() -> None:
    assert (report().gaps, report().gaps_ms) == (3, 180)


def test_one_conversation_that_failed_is_a_failure() -> None:
    found = report(completed=32, turns=Counter(answered=99, timeout=1), failures=["conversation 7: turn 2 timeout"])
    assert not found.ok
    assert (found.turns, found.answered, found.outcomes) == (100, 99, {"answered": 99, "timeout": 1})


def test_where_nothing_was_answered_there_are_no_times() -> None:
    found = report(latencies=[], turns=Counter(timeout=3), completed=0)
    assert (found.p50, found.p99, found.answered) == (None, None, 0)


def test_only_the_first_failures_are_kept() -> None:
    assert len(report(completed=0, failures=[str(number) for number in range(1000)]).failures) == 50


async def test_without_scripted_models_nothing_is_held() -> None:
    with pytest.raises(NotApplicable):
        await endure(Setup("http://nowhere/"), [P1], 3, Faults(), 1)
