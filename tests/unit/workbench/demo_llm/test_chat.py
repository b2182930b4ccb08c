from datetime import datetime

import pytest

from fleet.workbench.demo_llm.chat import explains_itself, make_small_talk, tell_not_understood
from fleet.workbench.demo_llm.reading import read
from tests.support.demo_tools import now, stock_tools


def said(utterance: str, at: datetime | None = None) -> str | None:
    return make_small_talk(read(utterance), stock_tools(), at or now())


@pytest.mark.parametrize(
    ("utterance", "answer"),
    [
        ("hello", "Hello. What can I do for you?"),
        ("你好", "你好。要我做什么？"),
        ("Thank you very much!", "You are welcome."),
        ("good night", "Goodbye."),
        ("再见", "再见。"),
        ("what time is it now", "It is 3:05 PM."),
        ("现在几点了", "我看看，现在是15点5分。"),
        ("what day is it today", "Today is Friday, November 21, 2025."),
        ("今天星期几", "今天是2025年11月21日，星期五。"),
        ("明天星期几", "明天是2025年11月22日，星期六。"),
    ],
)
def test_small_talk_is_answered(utterance: str, answer: str) -> None:
    assert said(utterance) == answer


@pytest.mark.parametrize("utterance", ["who are you", "what can you do", "你是谁", "你能做什么"])
def test_it_says_that_it_is_no_language_model(utterance: str) -> None:
    answer = said(utterance)
    assert answer is not None
    assert ("model" in answer and "demo" in answer) or ("模型" in answer and "演示" in answer)


@pytest.mark.parametrize(
    "utterance",
    ["what time does the store open", "tell me a joke", "hello my old friend from school", "讲个故事", "几点开门"],
)
def test_everything_else_is_no_small_talk(utterance: str) -> None:
    assert said(utterance) is None


def test_midnight_and_noon_are_said_rightly() -> None:
    assert said("what time is it", datetime(2025, 1, 1, 0, 0)) == "It is 12:00 AM."
    assert said("what time is it", datetime(2025, 1, 1, 12, 30)) == "It is 12:30 PM."
    assert said("几点了", datetime(2025, 1, 1, 9, 0)) == "我看看，现在是9点整。"


def test_not_understanding_is_said_in_the_users_language() -> None:
    english = tell_not_understood(read("Why is the sky blue?"), stock_tools())
    assert english.startswith("I did not understand “Why is the sky blue”. I am only a demo without a language model.")
    assert "set the volume" in english
    chinese = tell_not_understood(read("给我讲个故事"), ())
    assert chinese == "抱歉，我没有听懂“给我讲个故事”。我只是一个没有语言模型的演示程序。现在没有给我任何工具。"


def test_a_missing_tool_is_called_that() -> None:
    assert tell_not_understood(read("打开客厅的灯"), stock_tools()).startswith("抱歉，没有工具能做“打开客厅的灯”。")


def test_a_demo_explains_itself_once_and_is_short_then() -> None:
    first = tell_not_understood(read("Why is the sky blue?"), stock_tools())
    assert explains_itself(first)
    again = tell_not_understood(read("Why is the sky blue?"), stock_tools(), again=True)
    assert again == "I did not understand “Why is the sky blue”."
    assert not explains_itself("Okay, the volume is now 30.")
