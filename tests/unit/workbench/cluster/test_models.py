"""The scene of a check: a call first, then its outcome, wherever the turn is taken up."""

from fleet.workbench.cluster.check.models import CALLED, ActScene, answer
from fleet.workbench.conformance.steering.records import Asked, Body
from fleet.workbench.conformance.steering.script import Round

ASKED: Body = {"role": "user", "content": "scene 137: please act"}
CALL: Body = {"role": "assistant", "content": None}
RESULT: Body = {"role": "tool", "content": "true"}


def play(*messages: Body) -> Round:
    return ActScene(137, asked=lambda: [Asked(0.0, messages, ())]).round(0)


def test_a_question_leads_to_one_call_that_tells_its_scene() -> None:
    assert play(ASKED).calls == ((CALLED, {"level": 37, "seconds": 137}),)


def test_the_answer_names_the_calls_outcome() -> None:
    assert play(ASKED, CALL, RESULT).text == "Scene 137: it was done. Scene 137 remembers 0 questions."


def test_the_answer_says_that_a_call_failed() -> None:
    failed: Body = {"role": "tool", "content": "error: not done"}
    assert "it was not done, error: not done" in play(ASKED, CALL, failed).text


def test_the_calls_of_earlier_turns_do_not_count() -> None:
    earlier = (ASKED, CALL, RESULT, {"role": "assistant", "content": "Scene 137: it was done."})
    assert play(*earlier, ASKED).calls
    assert "remembers 1 questions" in play(*earlier, ASKED, CALL, RESULT).text


def test_a_turn_that_is_taken_up_goes_on_after_what_was_said() -> None:
    first, second = answer(137, "true", 0)
    assert play(ASKED, CALL, RESULT, {"role": "assistant", "content": first}).text == second
