from typing import Any

import pytest

from fleet.workbench.demo_llm.arguments import fill
from fleet.workbench.demo_llm.reading import read
from fleet.workbench.demo_llm.schemas import Tool, understand
from tests.support.demo_tools import one_of, switch, text, tool, whole

VOLUME = tool("set_volume", "", volume=whole(0, 100))
LAMP = tool("lamp_set_brightness", "", brightness=whole(0, 255))
AC = tool("ac_set_temperature", "", temperature=whole(16, 30))


def arguments(utterance: str, made: Tool) -> dict[str, Any]:
    return dict(fill(read(utterance), made).arguments)


@pytest.mark.parametrize(
    ("utterance", "made", "value"),
    [
        ("set the volume to thirty percent", VOLUME, 30),
        ("volume 500", VOLUME, 100),
        ("volume to half", VOLUME, 50),
        ("音量调到最大", VOLUME, 100),
        ("mute", VOLUME, 0),
        ("lamp brightness 50 percent", LAMP, 128),
        ("台灯亮度一半", LAMP, 128),
        ("lamp brightness 50", LAMP, 50),
        ("空调二十六度", AC, 26),
        ("the ac to the minimum", AC, 16),
        ("ac to 40", AC, 30),
    ],
)
def test_numbers_are_brought_into_the_range(utterance: str, made: Tool, value: int) -> None:
    (given,) = arguments(utterance, made).values()
    assert given == value
    assert isinstance(given, int)


@pytest.mark.parametrize(
    ("utterance", "made", "amount"),
    [
        ("turn up the volume", VOLUME, 10),
        ("声音小一点", VOLUME, -10),
        ("turn the volume down by 25", VOLUME, -25),
        ("turn the volume up twenty percent", VOLUME, 20),
        ("make the lamp brighter", LAMP, 26),
        ("lamp brighter by 20 percent", LAMP, 51),
        ("too hot", AC, -1),
    ],
)
def test_relative_changes_have_an_amount(utterance: str, made: Tool, amount: float) -> None:
    filled = fill(read(utterance), made)
    assert filled.change is not None
    assert filled.change.amount == amount
    assert not filled.missing


def test_a_goal_is_no_relative_change() -> None:
    filled = fill(read("turn the volume up to 80"), VOLUME)
    assert (filled.change, dict(filled.arguments)) == (None, {"volume": 80})


def test_what_was_not_said_is_missing() -> None:
    assert [entry.name for entry in fill(read("set the volume"), VOLUME).missing] == ["volume"]


@pytest.mark.parametrize(
    ("utterance", "made", "expected"),
    [
        (
            "turn on the bedroom light",
            tool("light", "", room=one_of("kitchen", "bedroom"), on=switch()),
            ("bedroom", True),
        ),
        ("关闭厨房的灯", tool("light", "", room=one_of("kitchen", "bedroom"), on=switch()), ("kitchen", False)),
        ("关闭卧室的灯", tool("light", "", room=text("房间"), state=one_of("on", "off")), ("卧室", "off")),
        ("make the light red", tool("light", "", color=one_of("red", "blue")), ("red",)),
        ("把灯变成蓝色", tool("light", "", color=text("hex, like #112233")), ("#0000ff",)),
        ("make the light red", tool("light", "", r=whole(0, 255), g=whole(0, 255), b=whole(0, 255)), (255, 0, 0)),
        ("light to 1 2 3", tool("light", "", r=whole(0, 255), g=whole(0, 255), b=whole(0, 255)), (1, 2, 3)),
        ("weather in london tomorrow", tool("weather", "", city=text()), ("London",)),
        ("明天北京的天气怎么样", tool("weather", "", city=text()), ("北京",)),
        ("take a photo of it", tool("take_photo", "", question=text()), ("take a photo of it",)),
        ("timer for half an hour", tool("timer", "", seconds=whole(1, 9999)), (1800,)),
        ("两小时的倒计时", tool("timer", "", minutes=whole(1, 9999)), (120,)),
        ("wake me up at seven thirty", tool("alarm", "", time=text("HH:MM")), ("07:30",)),
        ("晚上八点叫醒我", tool("alarm", "", hour=whole(0, 23), minute=whole(0, 59)), (20, 0)),
        ("turn off dark mode", tool("theme", "", theme=one_of("light", "dark")), ("light",)),
        ("set the theme to light", tool("theme", "", theme=one_of("light", "dark")), ("light",)),
        ("open the curtain", tool("curtain", "", position=whole(0, 100, "0 = closed, 100 = open")), (100,)),
    ],
)
def test_arguments_are_filled_by_what_they_are_about(utterance: str, made: Tool, expected: tuple[object, ...]) -> None:
    assert tuple(arguments(utterance, made).values()) == expected


def test_optional_arguments_are_left_out_unless_they_were_said() -> None:
    schema = {
        "properties": {
            "speed": whole(1, 9),
            "steps": whole(1, 9),
            "direction": one_of("forward", "backward"),
            "note": text(),
        }
    }
    walk = understand("walk", "", schema)
    assert arguments("walk forward three steps", walk) == {"steps": 3, "direction": "forward"}
    assert arguments("walk", walk) == {}


def test_text_is_given_to_one_argument_only() -> None:
    made = tool("send_message", "", to=text(), words=text())
    assert [entry.name for entry in fill(read("send a message to mother"), made).missing] == ["words"]
