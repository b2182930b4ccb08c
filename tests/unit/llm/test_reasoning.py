import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.llm.reasoning import ThoughtFilter


def say(pieces: list[str]) -> str:
    thoughts = ThoughtFilter()
    return "".join([*(thoughts.feed(piece) for piece in pieces), thoughts.end()])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Hello <think>you</think>", "Hello <think>you</think>"),
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


@given(st.text("<>/think ab", max_size=40), st.data())
def test_cuts_make_no_difference(written: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=5)))
    pieces = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    assert say(pieces) == say([written])


def test_text_is_said_as_soon_as_it_cannot_be_a_thought() -> None:
    thoughts = ThoughtFilter()
    assert [thoughts.feed(piece) for piece in ("<", "b", "> ", "<think>")] == ["", "<b", "> ", "<think>"]


def test_a_long_thought_is_not_kept() -> None:
    thoughts = ThoughtFilter()
    for _ in range(1000):
        thoughts.feed("<think>" * 10)
    assert len(thoughts._held) < 20
