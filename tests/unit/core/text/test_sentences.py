"""sentences."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.core.text.sentences import LONGEST, LONGEST_CODE, SentenceSplitter
from tests.support.every import for_every

BEFORE_NAMES = "mr mrs ms dr prof st mt gen sen rev capt vs cf approx"
BEFORE_NUMBERS = "no nr fig vol ch sec pp p ca"
PERHAPS_LAST = "a.m p.m etc inc ltd co jr sr"


def cut(text: str) -> list[str]:
    """Return the pieces of a text, the same at once and character by character."""
    splitter = SentenceSplitter()
    at_once = [*splitter.feed(text), *splitter.flush()]
    slowly = [piece for char in text for piece in splitter.feed(char)] + splitter.flush()
    assert slowly == at_once
    return at_once


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("今天天气晴朗，适合出门，记得防晒。再见！", ["今天天气晴朗，", "适合出门，记得防晒。", "再见！"]),
        ("好的，我来帮你打开客厅的灯。", ["好的，我来帮你打开客厅的灯。"]),
        ("Sure, I can help with that, of course, sir.", ["Sure, I can help with that,", "of course, sir."]),
        ("I am here: what now?", ["I am here: what now?"]),
        ("这是苹果、香蕉、梨。", ["这是苹果、", "香蕉、梨。"]),
        ("Hi! How are you?", ["Hi!", "How are you?"]),
    ],
)
def test_first_piece_ends_early_and_the_others_at_sentences(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


@pytest.mark.parametrize(
    "sentence",
    [
        "Pi is 3.14 and more.",
        "They are 1,000,000 people.",
        "At 7:30 we eat.",
        "Dr. Smith and Mrs. Jones came.",
        "I like fruit, e.g. apples.",
        "The U.S. Army is big.",
        "See No. 5 there.",
        "J. K. Rowling wrote it.",
        "Open https://example.com/a.b?c=d!e now.",
        "Use v1.2.3 today.",
        "Wait...what is it?",
        "It is 5 p.m. on Monday.",
        "价格是12.5元。",
        "比分是3：2。",
        "共1，000元。",
        "1. Tea.",
        "He said “stop.”",
        "He left (really!).",
        "What?!",
        "真的吗？！",
        "他说：“好。”",
        "等等……",
        "**Bold.**",
        "[Hi there](https://example.com/x.y).",
    ],
)
def test_marks_inside_of_something_end_nothing(sentence: str) -> None:
    assert cut(f"Ok.\n{sentence} Then more.") == ["Ok.", sentence, "Then more."]


@for_every("short", BEFORE_NAMES.split())
def test_a_dot_before_a_name_ends_nothing(short: str) -> None:
    assert cut(f"Ok.\nSee {short}. Smith there.") == ["Ok.", f"See {short}. Smith there."]


@for_every("short", BEFORE_NUMBERS.split())
def test_a_dot_before_a_number_ends_nothing(short: str) -> None:
    assert cut(f"Ok.\nSee {short}. 5 there. It is {short}. Yes.") == [
        "Ok.",
        f"See {short}. 5 there.",
        f"It is {short}.",
        "Yes.",
    ]


@for_every("short", PERHAPS_LAST.split())
def test_a_dot_that_may_end_a_sentence_does_so_before_a_capital(short: str) -> None:
    assert cut(f"Ok.\nIt is {short}. and more. It is {short}. Yes.") == [
        "Ok.",
        f"It is {short}. and more.",
        f"It is {short}.",
        "Yes.",
    ]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("No. I cannot.", ["No.", "I cannot."]),
        ("It is 7 p.m. Good night.", ["It is 7 p.m.", "Good night."]),
        ("So do I. Yes.", ["So do I.", "Yes."]),
        ("It is 42. Next.", ["It is 42.", "Next."]),
        ("It is 3.5. Next.", ["It is 3.5.", "Next."]),
        ("1. Tea\n2. Milk\n\n  3. Beer", ["1. Tea", "2. Milk", "3. Beer"]),
        ("Well… maybe.", ["Well…", "maybe."]),
        ("用了3.5秒.然后停了", ["用了3.5秒.", "然后停了"]),
        ("没有标点", ["没有标点"]),
        ("", []),
        (" \n ", []),
        ("See Mr.\nSmith", ["See Mr.", "Smith"]),
    ],
)
def test_ends_are_found(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


def test_piece_is_given_as_soon_as_the_character_after_it_is_known() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("今天天气晴朗，") == []
    assert splitter.feed("适") == ["今天天气晴朗，"]
    assert splitter.feed("合出门。\n") == ["适合出门。"]


def test_new_text_begins_early_again_after_a_flush() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Let me see.\n") == ["Let me see."]
    assert splitter.flush() == []
    assert splitter.feed("It is sunny today, and warm") == ["It is sunny today,"]


def test_emoji_before_the_text_does_not_use_up_the_early_end() -> None:
    assert cut("😊\n今天天气晴朗，适合出门。") == ["😊", "今天天气晴朗，", "适合出门。"]


def test_only_the_first_piece_that_says_something_ends_early() -> None:
    assert cut("Hello. 😊\nIt is sunny today, and warm.") == ["Hello.", "😊", "It is sunny today, and warm."]


def test_text_without_marks_is_cut_at_white_space() -> None:
    pieces = cut("word " * 60)
    assert all(len(piece) <= LONGEST for piece in pieces)
    assert set(" ".join(pieces).split()) == {"word"}


def test_long_sentence_is_cut_after_a_clause() -> None:
    clause = "this clause is so long that it alone fills more than a third of a piece"
    assert cut(f"Ok.\n{clause}, {clause}.")[1] == f"{clause},"


def test_long_text_without_white_space_is_cut_but_not_inside_of_an_emoji() -> None:
    family = "👨\u200d👩\u200d👧"
    pieces = cut("字" * (LONGEST - 2) + family)
    assert pieces[-1] == family


def test_marks_for_ever_do_not_wait_for_ever() -> None:
    splitter = SentenceSplitter()
    assert len(splitter.feed("!" * 1000)) >= 1000 // LONGEST - 1


def test_block_of_code_is_one_piece() -> None:
    code = "```python\nprint('x. y')\n\nexit()\n```"
    assert cut(f"Look:\n{code}\nDone. Yes.") == ["Look:", code, "Done.", "Yes."]


def test_block_of_code_without_end_is_cut_somewhere() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("```\n" + "x = 1\n" * LONGEST_CODE) != []


_PARTS = st.sampled_from(
    [
        *'。！？…，、；：.,;:!?"”’)*_`\n 1a中I-',
        "Dr.",
        "e.g.",
        "U.S.",
        "No.",
        "p.m.",
        "3.14",
        "1,000",
        "```",
        "...",
        "😊",
        "词" * 50,
        "word ",
        "https://a.b/c?d",
        "\u200d",
        " " * 130,
    ]
)


@given(st.lists(_PARTS, max_size=60), st.lists(st.integers(1, 9), min_size=1, max_size=20))
@example(["Dr.", " " * 130, "a"], [1])
def test_chunking_makes_no_difference_and_nothing_is_lost(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    splitter = SentenceSplitter()
    pieces: list[str] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        pieces += splitter.feed(text[at : at + size])
        at += size
        turn += 1
    pieces += splitter.flush()
    assert pieces == cut(text)
    assert all(piece and piece == piece.strip() for piece in pieces)
    assert all(len(piece) <= (LONGEST_CODE if "```" in text else LONGEST) for piece in pieces)
    _expect_only_white_space_between(text, pieces)


def _expect_only_white_space_between(text: str, pieces: list[str]) -> None:
    rest = text
    for piece in pieces:
        rest = rest.lstrip()
        assert rest.startswith(piece)
        rest = rest[len(piece) :]
    assert not rest.strip()
