from functools import cache

import pytest

from fleet.adapters.speech.command_words import BIAS, LONGEST, MARGIN, CommandWords

pytestmark = pytest.mark.speech


@cache
def words() -> CommandWords:
    return CommandWords()


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("把音量掉到百分之三十。", "把音量调到百分之三十。"),
        ("音量条大一点", "音量调大一点"),
        ("播放一手轻松的音乐。", "播放一首轻松的音乐。"),
        ("打开客厅的动。", "打开客厅的灯。"),
        ("关闭握势的灯。", "关闭卧室的灯。"),
        ("打开空调", "打开空调"),
    ],
)
def test_homophones_of_the_words_of_commands_are_replaced(heard: str, said: str) -> None:
    assert words().choose([(heard, -0.4)]) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "你好。",
        "turn on the light",
        "打开客厅的东西。",
        "提心吊胆",
        "他掉到水里了。",
        "大开眼界",
        "摄氏度是什么",
        "他比较高",
        "苹果掉下来了。",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert words().choose([(text, -0.4)]) == text


def test_a_long_text_is_no_command() -> None:
    long = "把音量掉到百分之三十" + "然后" * (LONGEST // 4 + 1)
    assert words().choose([(long, -0.4), ("把音量调到", -0.5)]) == long


def test_of_texts_that_are_nearly_as_likely_the_one_with_words_of_commands_is_taken() -> None:
    assert words().choose([("打开灯球。", -0.65), ("打开空调。", -0.75)]) == "打开空调。"
    assert words().choose([("打开灯球。", -0.65), ("打开空调。", -0.65 - MARGIN - 0.01)]) == "打开灯球。"
    assert words().choose([("今天很冷", -0.3), ("静音很冷", -0.3 - BIAS)]) == "今天很冷"
