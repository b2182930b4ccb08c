"""speakable."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.text import speakable as module
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable
from tests.support.every import for_every


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
        (r"5 \* 3", "5 * 3"),
        (r"\_not slanted\_", "_not slanted_"),
        ("**H**ello", "Hello"),
        ("***both*** and **_nested_**", "both and nested"),
        ("答案是**四十二**吗", "答案是四十二吗"),
        ("这是*重点*内容", "这是重点内容"),
        ("第**25**号", "第25号"),
        ("价格**five", "价格five"),
        ("five**价格", "five价格"),
        ("x**y", "x**y"),
        ("**First.", "First."),
        ("Second.**", "Second."),
        ("## 标题 ##", "标题"),
        ("See [the docs][1] or [^2].", "See the docs or."),
        ("World | 5 |", "World, 5"),
        ("5 &lt; 6 &#65;", "5 < 6 A"),
        ("好呀~", "好呀"),
        ("- **Tea**: 5 €", "Tea: 5 €"),
        ("> ## Title", "Title"),
        ("<think>hm</think> x", "hm x"),
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
        "3*4=12",
        "a_b",
        "snake_case_name",
        "2 * 3 * 4",
        "2*3*4 = 24",
        "2**3 = 8",
        "a*b*c",
        "f(x)*g(y)",
        "3 *4",
        "3* 4",
        "单价*2+运费*3",
        "数量*单价",
        "A[0] and [1]",
        "a | b",
        "press # now",
        "C# and F#",
        "#topic",
        "~5 km",
        "~/notes",
        "C:\\Users",
        "x^2",
        "if a<b and c>d",
        "List<String>",
        "AT&T, R&D",
        "it is 5 - 3 = 2",
        "x = y_1 + z_2",
        "1. Tea",
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
def test_no_piece_of_any_text_says_backticks_or_emoji(text: str) -> None:
    splitter = SentenceSplitter()
    for piece in [*splitter.feed(text), *splitter.flush()]:
        said = speakable(piece)
        assert not set(said) & set("😊\n")
        assert "`" not in said or "\\`" in piece
        assert said == said.strip()
        assert said == "" or any(char.isalnum() for char in said)


WORDS = st.text("abcxyzABC0123456789中文字 .,:()'", min_size=1, max_size=30).filter(lambda text: text.strip())


@given(WORDS, st.sampled_from(["*", "**", "_", "__", "`", "***"]), WORDS, WORDS)
def test_emphasised_words_are_said_without_their_marks(before: str, mark: str, inner: str, after: str) -> None:
    inner = inner.strip(" .,:()'") or "x"
    plain = speakable(f"x{before} {inner} {after}x")
    assert speakable(f"x{before} {mark}{inner}{mark} {after}x") == plain


@given(st.lists(st.text("abc123中文", min_size=1, max_size=6), min_size=2, max_size=6), st.sampled_from("_*+-/="))
def test_words_that_a_single_mark_joins_stay_as_they_are(words: list[str], mark: str) -> None:
    text = mark.join(words)
    if mark == "*" and any(char >= "\u4e00" for word in words for char in word[:1] + word[-1:]):
        return  # between Han characters a pair of single marks is emphasis
    assert speakable(text) == text


UNITS = [
    *(
        "*",
        "_",
        "`",
        "~",
        "#",
        ">",
        "<",
        "[",
        "]",
        "(",
        ")",
        "|",
        "\\",
        "&",
        "!",
        "-",
        "=",
        "\n",
        " ",
        "\t",
        ".",
        "…",
        "。",
    ),
    *(
        "**a",
        "*a*",
        "_a",
        "__a__ ",
        "[a",
        "[a](",
        "[a](b",
        "[a][",
        "](",
        "[^",
        "![",
        "[](",
        "((",
        "<a ",
        "<a",
        "</",
        "&#",
        "&#1",
    ),
    *(
        "&amp;",
        "http://",
        "www.",
        "http://a ",
        "- ",
        "* ",
        "# ",
        "> ",
        "\n>",
        "\n-",
        "\n#",
        "\n|",
        "|a|",
        "|-|\n",
        "- [ ] ",
        "\\*",
    ),
    *(
        "a*",
        "中*",
        "中**",
        "。*",
        "```",
        "```a",
        "``",
        "*`",
        "( ",
        "（",
        "\u200d",
        "😊",
        "😊*",
        '" ',
        "~~",
        "a~",
        "?!",
        ", ",
    ),
]


@for_every("unit", UNITS)
def test_a_long_text_of_anything_is_cleaned(unit: str) -> None:
    # A step that looked back, or ahead without a bound, would need minutes for each of these.
    speakable(unit * (20_000 // len(unit)) + "((a]")


@pytest.mark.parametrize("unit", ["*", "[a](", "[^", "\n|"])
def test_a_text_of_a_quarter_of_a_million_characters_is_cleaned(unit: str) -> None:
    speakable(unit * (250_000 // len(unit)))


@for_every("unit", UNITS)
def test_twice_the_text_needs_twice_the_steps(unit: str) -> None:
    short, long = (_count_lines(unit * size) for size in (500, 1000))
    assert long <= 2.5 * short + 500


def _count_lines(text: str) -> int:
    count = 0

    def note(_: Any, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        speakable(text)
    finally:
        sys.settrace(before)
    return count


@given(st.from_regex(module._PLAIN, fullmatch=True))
def test_a_sentence_of_words_is_what_cleaning_would_make_of_it(text: str) -> None:
    assert speakable(text) == module._clean(text) == text
