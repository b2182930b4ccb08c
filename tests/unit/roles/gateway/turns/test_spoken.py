import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.roles.gateway.turns.spoken import SpokenText
from tests.support.growth import grows_evenly


def say(*pieces: str) -> SpokenText:
    spoken = SpokenText()
    joined = [part for piece in pieces for part in spoken.feed(piece)] + spoken.flush()
    assert "".join(joined) == spoken.text
    return spoken


def test_decoration_markdown_and_emoji_are_left_out() -> None:
    assert say("★ **今天**天气*晴朗* 😀，约22度。◆").text == "今天天气晴朗，约22度。"
    assert say("- `one` two\n").text == "one two"


def test_sentences_are_joined_as_their_script_wants_it() -> None:
    assert say("你好。很高兴。").text == "你好。很高兴。"
    assert say("Hello. How are you?").text == "Hello. How are you?"
    assert say("안녕하세요. 반갑습니다.").text == "안녕하세요. 반갑습니다."


def test_lines_without_a_mark_are_told_apart() -> None:
    assert say("# Plan\n- one\n- `two`").text == "Plan, one, two"
    assert say("# 计划\n\n1. 买菜\n2. 做饭").text == "计划，1. 买菜，2. 做饭"
    assert say("第一行。\n第二行：\n“第三行。”\n四").text == "第一行。第二行：“第三行。”四"
    assert say("他说\n", "```\nx = 1\n```\n", "完了").text == "他说，完了"


def test_a_line_that_is_cut_for_its_length_is_one_line() -> None:
    assert "," not in say("word " * 60).text


def test_messages_without_a_mark_are_told_apart() -> None:
    spoken = say("我看一下")
    spoken.feed("二十度")
    spoken.flush()
    assert spoken.text == "我看一下，二十度"


def test_messages_of_one_turn_follow_each_other() -> None:
    spoken = say("Let me look.")
    spoken.feed("It is 22 degrees.")
    spoken.flush()
    assert spoken.text == "Let me look. It is 22 degrees."


def test_words_tells_an_emoji_from_nothing() -> None:
    assert not say("", "  ").words
    emoji = say("👍")
    assert emoji.words
    assert emoji.text == ""


@given(st.text(max_size=200), st.integers(1, 20))
def test_text_does_not_depend_on_how_it_came(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert say(*pieces).text == say(text).text


@pytest.mark.parametrize("line", ["a\n", "a. ", "- a\n", "。a", "“a”\n"])
def test_many_lines_take_no_longer_than_in_proportion(line: str) -> None:
    assert grows_evenly(lambda count: say(line * count), 1_000)
