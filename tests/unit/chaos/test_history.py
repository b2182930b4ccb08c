"""The checker of the chaos harness: each broken promise is found, and a good history has none."""

from dataclasses import replace

import pytest

from tests.chaos import history
from tests.chaos.history import Call, Execution, History, Span, Turn, check, classify, deadline

MAC = "02:c4:05:00:00:01"
TOKEN = "00001bcdfgh"


def a_turn(**changes: object) -> Turn:
    turn = Turn(1, MAC, 100, begun=1.0, said=2.0, ended=5.0, outcome="answered", heard=True, stops=1, final=True)
    turn.sentences = [f"Scene 100: the device said {TOKEN}.", "Scene 100 goes on with its part number 1."]
    turn.wanted, turn.told, turn.packets = list(turn.sentences), [TOKEN], [3.0, 3.06]
    for name, value in changes.items():
        setattr(turn, name, value)
    return turn


def a_history(turn: Turn | None = None, **changes: object) -> History:
    good = History(
        [turn or a_turn()],
        [Execution(2.5, MAC, 7, "self.chaos.act", 1, TOKEN)],
        [Call(MAC, 7, ("sent", "ok"), TOKEN)],
        [MAC],
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def rules(judged: History) -> set[str]:
    return {violation.rule for violation in check(judged)}


def test_a_good_history_breaks_no_rule() -> None:
    assert check(a_history()) == []


def test_a_call_that_ran_twice_is_found() -> None:
    once = a_history().executions[0]
    assert "executed twice" in rules(a_history(executions=[once, replace(once, token="00001zzzzzz")]))


def test_a_turn_that_acted_under_two_ids_is_found() -> None:
    once = a_history().executions[0]
    assert "turn acted twice" in rules(a_history(executions=[once, replace(once, call=8, token="00001zzzzzz")]))


@pytest.mark.parametrize(("resumed", "early"), [(1.6, True), (2.2, False), (2.6, False)])
def test_a_tool_that_acted_while_the_user_still_spoke_is_found(resumed: float, early: bool) -> None:
    """It acts at 2.5 s; what acts right after the user went on was asked for by a pause that was long enough."""
    found = rules(a_history(a_turn(resumed=resumed, said=3.5)))
    assert ("acted too soon" in found) is early


@pytest.mark.parametrize("outcome", ["open", "unanswered"])
def test_a_turn_without_an_end_is_found(outcome: str) -> None:
    assert "no answer" in rules(a_history(a_turn(outcome=outcome)))


def test_a_turn_that_ended_without_a_word_is_found() -> None:
    assert "ended without a word" in rules(a_history(a_turn(outcome="dismissed")))


@pytest.mark.parametrize("outcome", ["apologised", "device alert"])
def test_an_apology_ends_a_turn(outcome: str) -> None:
    apologised = a_turn(outcome=outcome, final=False)
    judged = a_history(turns=[apologised, a_turn(number=2)])
    assert not {rule for rule in rules(judged) if "answer" in rule or "word" in rule}


def test_an_answer_that_was_cut_short_is_found() -> None:
    whole = a_turn()
    assert "answer cut short" in rules(a_history(a_turn(sentences=whole.sentences[:1])))


def test_words_that_were_lost_with_the_connection_are_no_fault() -> None:
    assert check(a_history(a_turn(sentences=[], deaf=True))) == []


def test_a_sentence_that_was_said_twice_is_found() -> None:
    whole = a_turn()
    assert "said twice" in rules(a_history(a_turn(sentences=[*whole.sentences, whole.sentences[1]])))


def test_an_answer_that_nobody_could_hear_is_found() -> None:
    assert "answer without sound" in rules(a_history(a_turn(packets=[])))


def test_a_device_that_was_left_in_a_state_is_found() -> None:
    assert "device left behind" in rules(a_history(a_turn(outcome="unanswered", notes=["left speaking"])))
    assert "device left behind" in rules(a_history(turns=[]))


def test_a_device_whose_last_call_failed_is_found() -> None:
    told = a_turn(told=["error: not done, the device is not connected"])
    assert "device left behind" in rules(a_history(told, executions=[], calls=[]))


def test_ok_without_execution_is_found() -> None:
    judged = rules(a_history(executions=[]))
    assert {"OK, but it ran not once", "told OK, but it did not run"} <= judged


def test_ok_with_the_result_of_another_call_is_found() -> None:
    assert "OK with a foreign result" in rules(a_history(calls=[Call(MAC, 7, ("ok",), "00002zzzzzz")]))


def test_not_sent_that_ran_is_found() -> None:
    assert "NOT_SENT, but it ran" in rules(a_history(calls=[Call(MAC, 7, ("not_sent",))]))
    told = a_turn(told=["error: not done, the device is not connected"])
    assert "told NOT_SENT, but it ran" in rules(a_history(told))


@pytest.mark.parametrize("states", [("sent",), ("sent", "ok", "sent")])
def test_a_call_that_never_ended_is_found(states: tuple[history.State, ...]) -> None:
    found = rules(a_history(calls=[Call(MAC, 7, states, TOKEN)]))
    assert found & {"call never ended", "call ended more than once"}


def test_a_call_with_two_outcomes_is_found() -> None:
    assert "call ended more than once" in rules(a_history(calls=[Call(MAC, 7, ("sent", "unknown", "ok"), TOKEN)]))


@pytest.mark.parametrize("ran", [0, 1])
def test_unknown_may_have_run_or_not(ran: int) -> None:
    told = a_turn(told=["error: unknown whether it was done, the device did not answer in time"])
    executions = a_history().executions[:ran]
    judged = a_history(told, calls=[Call(MAC, 7, ("sent", "unknown"))], executions=executions)
    assert rules(judged) == {"device left behind"}


def test_a_call_without_a_record_is_found() -> None:
    assert "ran without a record" in rules(a_history(calls=[]))


def test_a_model_that_was_told_two_things_is_found() -> None:
    assert "told two things" in rules(a_history(a_turn(told=["error: broken", TOKEN])))


def test_an_answer_without_the_result_is_found() -> None:
    vague = ["Scene 100: it may have been done or not."]
    assert "answer without the result" in rules(a_history(a_turn(sentences=vague, wanted=vague)))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TOKEN, "ok"),
        ("error: not done, the device is not connected", "not_sent"),
        ("error: unknown whether it was done, the device did not answer in time", "unknown"),
        ("error: it burns", "error"),
        ("sunny", "other"),
    ],
)
def test_what_the_model_was_told_is_understood(text: str, kind: str) -> None:
    assert classify(text, [TOKEN]) == kind


def test_a_fault_moves_the_deadline_of_what_it_may_have_hit() -> None:
    assert deadline(10, 30, [], 100, 90) == 40
    assert deadline(10, 30, [Span(20, 25)], 100, 90) == 55
    assert deadline(10, 30, [Span(41, 50)], 100, 90) == 40
    assert deadline(10, 30, [Span(0, 5)], 100, 90) == 40


def test_the_deadline_does_not_move_for_ever() -> None:
    assert deadline(10, 30, [Span(at, at + 20) for at in range(10, 500, 25)], 500, 90) == 100
