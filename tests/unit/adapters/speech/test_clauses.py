import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.clauses import split_clauses


def test_the_first_piece_is_short_and_further_ones_may_grow() -> None:
    text = "好的，明天晴朗，最高二十五度，适合户外活动，记得带上帽子和水。"
    assert split_clauses(text, 4, 2.0, 36) == [
        "好的，",
        "明天晴朗，",
        "最高二十五度，",
        "适合户外活动，",
        "记得带上帽子和水。",
    ]
    assert split_clauses(text, 8, 2.0, 36) == ["好的，明天晴朗，", "最高二十五度，适合户外活动，", "记得带上帽子和水。"]


@pytest.mark.parametrize("text", ["现在是7:30", "It is 3.14 now", "1,234 steps", "See example.com"])
def test_marks_inside_numbers_and_names_do_not_cut(text: str) -> None:
    assert split_clauses(text, 1, 1.0, 100) == [text]


def test_closing_quotes_stay_with_their_clause() -> None:
    assert split_clauses("“好的。”他说。", 1, 1.0, 36) == ["“好的。”", "他说。"]


def test_a_clause_that_is_too_long_is_cut_at_a_space() -> None:
    assert split_clauses("one two three four", 1, 1.0, 9) == ["one two ", "three ", "four"]


def test_a_clause_without_spaces_is_cut_anywhere() -> None:
    assert split_clauses("没有标点的句子", 1, 1.0, 3) == ["没有标", "点的句", "子"]


def test_nothing_to_say_is_no_piece() -> None:
    assert split_clauses("", 6, 1.5, 36) == split_clauses("  ", 6, 1.5, 36) == []


@given(st.text(alphabet=st.sampled_from("好的，。！,.!?:  ab1”)"), max_size=80), st.integers(1, 20), st.integers(1, 30))
def test_pieces_are_the_whole_text_and_never_too_long(text: str, first: int, longest: int) -> None:
    pieces = split_clauses(text, first, 1.5, longest)
    assert "".join(pieces).split() == text.split() or "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= longest for piece in pieces)
