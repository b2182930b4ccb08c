"""speakable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.sentences import SentenceSplitter
from fleet.core.speakable import speakable


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**Bold** and *slanted* and __both__.", "Bold and slanted and both."),
        ("**bold, te", "bold, te"),
        ("xt** more", "xt more"),
        ("# 标题", "标题"),
        ("##标题：好", "标题：好"),
        ("- one", "one"),
        ("* one", "one"),
        ("- [x] done", "done"),
        ("1. Tea", "1. Tea"),
        ("> quote", "quote"),
        ("[the page](https://example.com/a_(b))", "the page"),
        ("![a cat](cat.png) here", "a cat here"),
        ("[text](https://exa", "text"),
        ("Here](https://example.com/x) it is", "Here it is"),
        ("Fact.[^1]", "Fact."),
        ("See https://www.example.com/a/b?c=d, ok.", "See example.com, ok."),
        ("请看https://example.com/路径。", "请看example.com路径。"),
        ("<https://example.com>", "example.com"),
        ("use `ls` now", "use ls now"),
        ("Look: ```py\nx = 1\n``` done", "Look: done"),
        ("```\nx = 1", ""),
        ("| name | price |", "name, price"),
        ("| 名称 | 价格 |", "名称，价格"),
        ("|---|:-:|", ""),
        ("---", ""),
        ("***", ""),
        ("<b>x</b> &amp; y", "x & y"),
        ("~~gone~~", "gone"),
        ("snake_case", "snake case"),
        (r"5 \* 3", "5 × 3"),
    ],
)
def test_markdown_is_not_said(written: str, said: str) -> None:
    assert speakable(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Hello 😊👍🏽!", "Hello!"),
        ("👨\u200d👩\u200d👧 family", "family"),
        ("1️⃣ first ★", "1 first"),
        ("A → B", "A B"),
        ("好(😊)的", "好的"),
        ("🎉", ""),
        ("♪♫ …", ""),
    ],
)
def test_emoji_and_decoration_are_not_said(written: str, said: str) -> None:
    assert speakable(written) == said


@pytest.mark.parametrize(
    "text",
    [
        "今天 25℃，湿度 60%。",
        "It is -5 °C, 3.5 km/h; 7:30 p.m.",
        "玛丽·居里《自传》",
        "5~10分钟",
        "C# and #1",
        "$5, ¥6 and €7",
        "1/2 + 3 = 3.5",
        "它有 30㎡ 大。",
        "Don't (really)!",
        "他说：“好。”",
        "naïve café 日本語 한국어",
        "mail a@example.com",
    ],
)
def test_what_can_be_said_stays(text: str) -> None:
    assert speakable(text) == text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("好！！！", "好！"),
        ("真的吗！？！", "真的吗？"),
        ("等等......好吧", "等等…好吧"),
        ("a  b\n c", "a b c"),
        ("今天 天气", "今天天气"),
        ("well , ok .", "well, ok."),
        ("”他说", "他说"),
        ("，然后", "然后"),
        ("。", ""),
        ("", ""),
    ],
)
def test_marks_and_white_space_are_tidied(written: str, said: str) -> None:
    assert speakable(written) == said


_MARKDOWN = st.lists(
    st.sampled_from(
        [*"*_`#|[]()~>-!., \n", "**", "```", "](", "http://", "x", "字", "1", "😊", "\u200d", "&lt;", "<b"]
    ),
    max_size=40,
)


@given(st.one_of(st.text(max_size=80), _MARKDOWN.map("".join)))
def test_no_piece_of_any_text_says_asterisks_or_emoji(text: str) -> None:
    splitter = SentenceSplitter()
    for piece in [*splitter.feed(text), *splitter.flush()]:
        said = speakable(piece)
        assert not set(said) & set("*`\\|😊\n")
        assert said == said.strip()
        assert said == "" or any(char.isalnum() for char in said)
