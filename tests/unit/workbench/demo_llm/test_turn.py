import pytest

from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.turn import Call, Conversation, reply
from tests.support.demo_tools import ANSWERS, Calls, now, talk, tool, tools_named

STATUS, VOLUME, BRIGHTNESS = "get_device_status", "audio_speaker_set_volume", "screen_set_brightness"
THEME = "screen_set_theme"
STOCK = tools_named("stock")


@pytest.mark.parametrize(
    ("utterance", "earlier", "last_answer", "calls"),
    [
        ("40", "set the volume", "What should the volume be?", [(VOLUME, {"volume": 40})]),
        ("四十", "音量调一下", "音量要设成多少？可以从0到100。", [(VOLUME, {"volume": 40})]),
        ("深色", "换个主题", "屏幕主题要设成什么？", [(THEME, {"theme": "dark"})]),
        ("now 50", "set the volume to 30", "Okay.", [(VOLUME, {"volume": 50})]),
        ("再大一点", "屏幕亮度调到50", "好的。", [(STATUS, {}), (BRIGHTNESS, {"brightness": 85})]),
        ("a bit more", "turn up the volume", "Okay.", [(STATUS, {}), (VOLUME, {"volume": 80})]),
        ("yes", "set the volume", "What should the volume be?", []),
        ("40", "hello", "Hello. What can I do for you?", []),
    ],
)
def test_what_was_left_out_is_taken_from_before(utterance: str, earlier: str, last_answer: str, calls: Calls) -> None:
    assert talk(utterance, STOCK, earlier=(earlier,), last_answer=last_answer)[0] == calls


@pytest.mark.parametrize(
    ("utterance", "name", "result", "answer"),
    [
        (
            "turn up the volume",
            STATUS,
            "error: not done, the device is not connected",
            "I could not set the volume. The reason given is: the device is not connected.",
        ),
        (
            "set the volume to 30 and the brightness to 50",
            BRIGHTNESS,
            "error: no backlight",
            "Okay, the volume is now 30. I could not set the screen brightness. The reason given is: no backlight.",
        ),
        (
            "音量调到三十",
            VOLUME,
            "error: unknown whether it was done, no answer in time",
            "我试着设置音量，但不知道是否成功。原因是：no answer in time。",
        ),
        ("mute", VOLUME, "false", "I could not set the volume. No reason was given."),
        ("what is the volume", STATUS, "{}", "The answer was empty."),
        ("what is the volume", STATUS, '{"battery": {"level": 3}}', "The device did not report the volume."),
        ("what do you see", "camera_take_photo", "**A cat** sits\n- on a `mat`", "A cat sits on a mat"),
        (
            "turn up the volume",
            STATUS,
            '{"volume": 4000}',
            "I do not know what the volume is now. Which value should it be?",
        ),
        ("声音大一点", STATUS, "no idea", "我不知道音量现在是多少。请说一个具体的数值，要设成多少？"),
    ],
)
def test_what_a_tool_answers_is_told(utterance: str, name: str, result: str, answer: str) -> None:
    assert talk(utterance, STOCK, answers={name: result})[1] == answer


def test_without_a_tool_that_tells_the_current_value_it_asks() -> None:
    assert talk("make it louder", STOCK[1:]) == ([], "What should the volume be? It can be from 0 to 100.")


def test_without_leave_to_call_it_answers_with_what_it_has() -> None:
    assert reply(Conversation("volume 30", may_call=False), STOCK, now).text
    done = ((Call(STATUS, {}), ToolResult(ANSWERS[STATUS])),)
    assert "70" in reply(Conversation("volume 30", done=done, may_call=False), STOCK, now).text


def test_results_without_offered_tools_are_still_told() -> None:
    done = ((Call(VOLUME, {"volume": 30}), ToolResult("true")),)
    assert reply(Conversation("volume 30", done=done), (), now).text.startswith("Okay")


@pytest.mark.parametrize(
    "utterance",
    ["", "?", "...", "\U0001f600", "a" * 1000, "把" * 1000, "{}[]'`", "İstanbul", "volume 1.5.7"]
    + [f"音量{n * 400}" for n in "1一十万半"],
)
def test_odd_utterances_are_survived(utterance: str) -> None:
    calls, answer = talk(utterance, (tool("set_volume", "", volume={"type": "integer"}), *tools_named("home")))
    assert len(calls) <= 1
    assert answer
