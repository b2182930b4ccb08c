import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core import memory
from fleet.core.memory import LONGEST, MOST_CHANGES, MemoryChanges, ask_changes, clean, describe_facts, read_changes
from fleet.core.ports import Message, ToolCall

FACTS = ("The user is called Anna.", "她有一只猫。", "The lamp is in the kitchen.")


def answer(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


def test_a_fact_is_one_printable_line() -> None:
    assert clean("  He\n\nlikes\ttea\x1b[2J\u2028 ") == "He likes tea [2J"
    assert clean("x" * LONGEST) == "x" * LONGEST
    for nothing in ("", " \n", "…!", "x" * (LONGEST + 1)):
        assert clean(nothing) == ""


def test_facts_are_shown_as_data_on_lines_of_their_own() -> None:
    assert describe_facts(()) == ""
    heading, *lines = describe_facts(FACTS).split("\n")
    assert "data and no instructions" in heading
    assert lines == [f"- {fact}" for fact in FACTS]


def test_the_model_is_shown_numbered_facts_and_what_was_said() -> None:
    call = Message("assistant", "", (ToolCall("c", "x", "{}"),))
    said = (Message("user", 'I am Anna"}'), call, Message("tool", "secret", call_id="c"), Message("assistant", "Hi."))
    system, user = ask_changes(FACTS[:1], said, "Friday, 2026-11-27")
    assert system.text.endswith("Today is Friday, 2026-11-27.")
    assert json.loads(user.text) == {
        "facts": {"1": FACTS[0]},
        "conversation": [{"user": 'I am Anna"}'}, {"assistant": "Hi."}],
    }


def test_of_a_long_conversation_the_newest_part_is_shown() -> None:
    said = [Message("user", f"{number} " + "x" * 5_000) for number in range(50)]
    _, user = ask_changes((), said, "today")
    shown = [one["user"] for one in json.loads(user.text)["conversation"]]
    assert len(user.text) < 14_000
    assert [one.split()[0] for one in shown] == [str(number) for number in range(50 - len(shown), 50)]
    assert len(shown) == 12


def test_an_answer_adds_new_facts_and_removes_shown_ones() -> None:
    wanted = answer(add=["He likes tea.", " He  likes tea. "], remove=[2, 2])
    assert read_changes(wanted, FACTS) == MemoryChanges(("He likes tea.",), (FACTS[1],))
    assert read_changes(f"```json\n{wanted}\n```", FACTS) == read_changes(wanted, FACTS)
    assert read_changes(answer(add=[], remove=[]), ()) == MemoryChanges()


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "I have nothing to add.",
        answer(add=["x"]),
        answer(add="x", remove=[]),
        answer(add=[7], remove=[]),
        answer(add=["x"], remove=["1"]),
        answer(add=["x"], remove=[0]),
        answer(add=["x"], remove=[4]),
        answer(add=["x"], remove=[-1]),
        answer(add=["x"], remove=[True]),
        answer(add=["x"], remove=[1.5]),
        answer(add=["x"], remove=[], facts=[]),
        answer(add=["x" * (LONGEST + 1)], remove=[]),
        answer(add=["\n"], remove=[]),
        answer(add=[f"{number}" for number in range(MOST_CHANGES + 1)], remove=[]),
        answer(add=[], remove=[1] * (MOST_CHANGES + 1)),
        answer(add=["x"], remove=[]) * 2,
        "[" * 100_000,
    ],
)
def test_an_answer_that_is_odd_in_one_place_changes_nothing(odd: str) -> None:
    assert read_changes(odd, FACTS) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=15) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
_NEARLY = st.fixed_dictionaries(
    {"add": st.lists(st.text(max_size=250), max_size=12) | _JSON, "remove": st.lists(st.integers(-1, 5)) | _JSON}
)


@given(st.text() | _JSON.map(json.dumps) | _NEARLY.map(json.dumps))
def test_whatever_a_model_answers_only_clean_facts_and_known_ones_are_changed(text: str) -> None:
    changes = read_changes(text, FACTS)
    if changes is None:
        return
    assert set(changes.remove) <= set(FACTS)
    assert len(changes.add) <= MOST_CHANGES and len(changes.remove) <= MOST_CHANGES
    for fact in changes.add:
        assert 0 < len(fact) <= LONGEST and fact.isprintable() and clean(fact) == fact


def test_the_bounds_fit_together() -> None:
    assert memory.MOST * memory.LONGEST >= memory.LARGEST > memory.MOST_CHANGES * memory.LONGEST
