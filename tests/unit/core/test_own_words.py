import pytest

from fleet.core.own_words import is_own

SAID = ["The weather tomorrow will be mostly sunny.", "明天天气晴朗，气温二十度。"]


@pytest.mark.parametrize(
    "text",
    ["weather tomorrow will be", "The Weather tomorrow, will be!", "天气晴朗气温", "will be mostly funny"],
)
def test_a_run_of_what_was_being_said_is_ours(text: str) -> None:
    assert is_own(text, SAID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "the weather",
        "天气",
        "turn on the light",
        "what will the weather in London be tomorrow",
        "打开客厅的灯",
    ],
)
def test_the_words_of_a_user_are_not_ours(text: str) -> None:
    assert not is_own(text, SAID)


def test_without_an_answer_nothing_is_ours() -> None:
    assert not is_own("the weather tomorrow will be", [])
