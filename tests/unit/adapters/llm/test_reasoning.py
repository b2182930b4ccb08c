import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.llm.reasoning import ThoughtFilter


def say(pieces: list[str]) -> str:
    thoughts = ThoughtFilter()
    parts = [*(thoughts.feed(piece) for piece in pieces), thoughts.end()]
    return "".join(part.said for part in parts)


def think(pieces: list[str]) -> str:
    thoughts = ThoughtFilter()
    parts = [*(thoughts.feed(piece) for piece in pieces), thoughts.end()]
    return "".join(part.thought for part in parts)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Hello <think>you</think>", "Hello "),
        ("Hello.<think>hm</think> And you?", "Hello.And you?"),
        ("Hello <think>who", "Hello "),
        ("<thinking>hm <think> </thinking>Hello", "Hello"),
        ("<thought>hm</thought>Hello", "Hello"),
        ("</think>Hello", "Hello"),
        ("I </think>Hello", "I Hello"),
        ("a < b <", "a < b <"),
        ("<think>\nhm < 3\n</think>\n\nHello", "Hello"),
        ("\n <think></think>Hello", "Hello"),
        ("<think>never ends", ""),
        ("<think>a</think>", ""),
        ("<thinker>", "<thinker>"),
        ("<thin", "<thin"),
        ("<", "<"),
        ("  Hello", "Hello"),
        ("", ""),
        ("<think>a</think><think>b</think>c", "c"),
        ("<think>a</thin</think>b", "b"),
    ],
)
def test_thoughts_are_left_out_however_they_are_cut(written: str, said: str) -> None:
    assert say([written]) == said
    assert say(list(written)) == said


@pytest.mark.parametrize(
    ("written", "thought"),
    [
        ("<think>\nhm < 3</think>Hello", "hm < 3"),
        ("<think>never ends</thi", "never ends</thi"),
        ("a<think>b</think>c<thought>d</thought>", "bd"),
        ("<think>a</thinking>b</think>c", "a</thinking>b"),
        ("Hello", ""),
    ],
)
def test_thoughts_are_given_however_they_are_cut(written: str, thought: str) -> None:
    assert think([written]) == thought
    assert think(list(written)) == thought


@given(st.text("<>/think ab", max_size=40), st.data())
def test_cuts_make_no_difference(written: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=5)))
    pieces = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert say(pieces) == say([written])
    assert think(pieces) == think([written])


def test_text_is_said_as_soon_as_it_cannot_be_a_thought() -> None:
    thoughts = ThoughtFilter()
    assert [thoughts.feed(piece).said for piece in ("<", "b", "> ", "a <th", "e>")] == ["", "<b", "> ", "a ", "<the>"]


def test_a_long_thought_is_not_kept() -> None:
    thoughts = ThoughtFilter()
    for _ in range(1000):
        thoughts.feed("<think>" * 10)
    assert len(thoughts._held) < 20
