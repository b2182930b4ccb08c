"""The judge over histories that are whole, and over one broken history for each rule."""

from dataclasses import replace

import pytest

from fleet.workbench.cluster.check.history import History, Kind, Turn, during
from fleet.workbench.cluster.check.judge import judge
from fleet.workbench.cluster.check.models import answer
from fleet.workbench.cluster.cluster import Restart

DEVICE, CLIENT = "02:00:00:00:00:01", "client 1"
RESTART = Restart("edge", "edge-1", began=10.0, ready=2.0, drain=3.0, code=0, dropped_work=False)


def turn(number: int, who: str, begun: float, *, earlier: int = 0) -> Turn:
    kind: Kind = "client" if who == CLIENT else "device"
    words = " ".join(answer(100 + number, "true", earlier))
    times = {"asked": begun + 1, "heard": begun + 2.5, "ended": begun + 4}
    return Turn(number, who, kind, 100 + number, begun, outcome="answered", calls=1, answer=words, **times)


def whole() -> History:
    """Return a history in which nothing went wrong: both talk before, during and after the restart."""
    turns = [
        turn(1, DEVICE, 1.0),
        turn(2, CLIENT, 1.0),
        turn(3, DEVICE, 11.0),
        turn(4, CLIENT, 12.0, earlier=1),
        turn(5, DEVICE, 21.0),
        turn(6, CLIENT, 22.0, earlier=2),
    ]
    return History(turns, [RESTART], [], [DEVICE, CLIENT], api_requests=7, over=20.0)


def rules(history: History) -> list[str]:
    return [fault.rule for fault in judge(history).faults]


def test_a_whole_history_is_without_fault_and_measured() -> None:
    history = whole()
    history.turns[2].repeats = 1
    history.turns[2].heard = 14.0
    verdict = judge(history)
    assert verdict.ok
    assert (verdict.users, verdict.turns, verdict.answered, verdict.lost) == (2, 6, 6, 0)
    assert (verdict.repeats, verdict.calls, verdict.api_requests) == (1, 6, 7)
    assert (verdict.median_wait, verdict.longest_wait) == (1.5, 2.0)
    (figures,) = verdict.restarts
    assert (figures.name, figures.ready, figures.drain) == ("edge-1", 2.0, 3.0)
    assert (figures.turns, figures.longest_wait) == (2, 2.0)


def test_nothing_said_is_nothing_proved() -> None:
    assert not judge(History()).ok


def test_a_turn_without_an_answer_is_lost() -> None:
    history = whole()
    history.turns[2].outcome = "lost"
    history.turns[2].notes.append("closed after 1.20 s")
    verdict = judge(history)
    assert [(fault.rule, "closed after 1.20 s" in fault.detail) for fault in verdict.faults] == [("turn lost", True)]
    assert (verdict.answered, verdict.lost) == (5, 1)


def test_a_turn_that_never_ended_is_lost() -> None:
    history = whole()
    history.turns[2].outcome = "open"
    assert rules(history) == ["turn lost"]


@pytest.mark.parametrize("outcome", ["answered", "lost"])
def test_a_tool_that_runs_twice_is_found_whatever_the_turn_came_to(outcome: str) -> None:
    history = whole()
    history.turns[2].calls = 2
    history.turns[2].outcome = outcome  # type: ignore[assignment]
    assert "tool ran twice" in rules(history)


def test_a_tool_that_never_ran_is_found() -> None:
    history = whole()
    history.turns[2].calls = 0
    assert rules(history) == ["tool did not run"]


def test_an_answer_that_tells_of_a_failed_call_is_found() -> None:
    history = whole()
    history.turns[2].answer = " ".join(answer(103, "error: unknown whether", 0))
    assert rules(history) == ["tool did not run"]


def test_the_answer_to_another_question_is_found() -> None:
    history = whole()
    history.turns[2].answer = history.turns[0].answer
    assert rules(history) == ["answer of another turn"]


def test_who_gets_no_turn_after_the_last_restart_is_left_behind() -> None:
    history = whole()
    del history.turns[4]
    assert rules(history) == ["no turn after the restart"]


def test_a_client_whose_session_is_forgotten_is_found() -> None:
    history = whole()
    history.turns[3] = turn(4, CLIENT, 12.0, earlier=0)
    assert rules(history) == ["session lost"]


def test_a_device_may_begin_a_new_conversation_at_any_time() -> None:
    history = whole()
    history.turns[2] = turn(3, DEVICE, 11.0, earlier=0)
    assert judge(history).ok


@pytest.mark.parametrize("changed", [{"code": -9}, {"code": 1}, {"code": None}, {"dropped_work": True}])
def test_a_process_that_does_not_end_in_order_is_found(changed: dict[str, object]) -> None:
    history = whole()
    history.restarts = [replace(RESTART, **changed)]  # type: ignore[arg-type]
    assert rules(history) == ["unclean exit"]


def test_what_was_seen_to_be_wrong_meanwhile_counts() -> None:
    history = whole()
    history.add_fault("api", "bootstrap 3: no answer")
    assert rules(history) == ["api"]


def test_a_restart_falls_into_the_turns_that_run_beside_it() -> None:
    history = whole()
    assert [one.number for one in during(history.turns, RESTART)] == [3, 4]
