import pytest

from fleet.workbench.demo_llm.answers import ask, clean, confirm, tell_failure
from fleet.workbench.demo_llm.plan import Missing, Which
from fleet.workbench.demo_llm.results import ToolText
from fleet.workbench.demo_llm.schemas import Tool
from tests.support.demo_tools import one_of, switch, text, tool, whole


@pytest.mark.parametrize(
    ("made", "arguments", "english", "chinese"),
    [
        (
            tool("set_volume", "", volume=whole(0, 100)),
            {"volume": 30},
            "Okay, the volume is now 30.",
            "好的，音量已经设为30。",
        ),
        (
            tool("screen_set_theme", "", theme=one_of("light", "dark")),
            {"theme": "dark"},
            "Okay, the screen theme is now dark.",
            "好的，屏幕主题已经设为深色。",
        ),
        (tool("lamp_turn_off"), {}, "Okay, the light is off.", "好的，灯已经关闭。"),
        (
            tool("ac_power", "", on=switch()),
            {"on": True},
            "Okay, the air conditioner is on.",
            "好的，空调已经打开。",
        ),
        (
            tool("light_set_rgb", "", r=whole(0, 255), g=whole(0, 255), b=whole(0, 255)),
            {"r": 255, "g": 0, "b": 0},
            "Okay, the light color is now red.",
            "好的，灯颜色已经设为红色。",
        ),
        (
            tool("timer_set", "", seconds=whole(1, 999)),
            {"seconds": 600},
            "Okay, the timer is now 600 seconds.",
            "好的，定时器已经设为600秒。",
        ),
        (
            tool("player", "", action=one_of("play", "stop")),
            {"action": "stop"},
            "Okay, done: stop.",
            "好的，已经完成：停止。",
        ),
        (tool("launch_rocket"), {}, "Okay, done: launch the rocket.", "好的，已经完成：开始rocket。"),
        (
            tool("switch_set", "", device=one_of("fan", "kettle"), on=switch()),
            {"device": "kettle", "on": False},
            "Okay, the kettle is off.",
            "好的，水壶已经关闭。",
        ),
    ],
)
def test_what_was_set_is_confirmed(made: Tool, arguments: dict[str, object], english: str, chinese: str) -> None:
    assert confirm(made, arguments, "en") == english
    assert confirm(made, arguments, "zh") == chinese


def test_failures_are_told_with_their_reason() -> None:
    made = tool("set_volume", "", volume=whole(0, 100))
    assert tell_failure(made, ToolText("error: it is broken."), "en") == (
        "I could not set the volume. The reason given is: it is broken."
    )
    assert tell_failure(made, ToolText("false"), "zh") == "没能设置音量。设备没有说明原因。"
    unknown = tell_failure(made, ToolText("error: unknown whether it was done, no answer"), "en")
    assert unknown.startswith("I tried to set the volume, but I do not know whether it worked.")


def test_questions_name_what_is_missing() -> None:
    volume, theme = tool("set_volume", "", volume=whole(0, 9)), tool("set_theme", "", theme=one_of("light", "dark"))
    weather, lamp = (
        tool("get_weather", "", city=text()),
        tool("light", "", room=one_of("kitchen", "study"), on=switch()),
    )
    assert ask(Missing(volume, volume.properties[0]), "en") == "What should the volume be? It can be from 0 to 9."
    assert ask(Missing(theme, theme.properties[0]), "zh") == "主题要设成什么？可以是浅色、深色。"
    assert ask(Missing(weather, weather.properties[0]), "zh") == "请问城市是什么？"
    assert ask(Missing(lamp, lamp.properties[0]), "en") == "Which room do you mean? It can be kitchen or study."
    assert ask(Which((tool("a_turn_on"), tool("b_turn_on"))), "en").startswith("Which one do you mean?")


def test_prose_is_made_speakable() -> None:
    assert clean("**A cat** sits\n- on a `mat`") == "A cat sits on a mat"
    assert len(clean("word " * 1000)) <= 601
