from fleet.workbench.conformance.steering.progress import results, since_user, text_of, unsaid
from fleet.workbench.conformance.steering.records import Body

ASKED: Body = {"role": "user", "content": "act"}
CALL: Body = {"role": "assistant", "content": None}
RESULT: Body = {"role": "tool", "content": "true"}
SAID: Body = {"role": "assistant", "content": "It was done."}


def test_only_what_came_after_the_newest_question_counts() -> None:
    assert since_user([ASKED, CALL, RESULT, SAID, ASKED, CALL]) == [CALL]
    assert since_user([ASKED]) == []


def test_results_are_those_of_tools() -> None:
    assert results([CALL, RESULT, SAID]) == ["true"]


def test_what_was_written_is_not_written_again_however_it_was_cleaned() -> None:
    assert unsaid(["It was done.", "And more."], [CALL, {"role": "assistant", "content": "it was done"}]) == [
        "And more."
    ]


def test_a_message_without_text_says_nothing() -> None:
    assert text_of(CALL) == ""
