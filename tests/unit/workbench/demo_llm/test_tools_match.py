import pytest

from fleet.workbench.demo_llm.reading import read
from fleet.workbench.demo_llm.schemas import Tool
from fleet.workbench.demo_llm.tools_match import find_source, find_tools
from tests.support.demo_tools import one_of, stock_tools, switch, text, tool, whole


def found(utterance: str, *tools: Tool) -> list[str]:
    return [match.tool.name for match in find_tools(read(utterance), tools)]


LAMPS = (tool("living_room_light_on"), tool("bedroom_light_on"), tool("bedroom_light_off"))


def test_another_room_is_another_lamp() -> None:
    assert found("turn on the living room light", *LAMPS) == ["living_room_light_on"]
    assert found("关闭卧室的灯", *LAMPS) == ["bedroom_light_off"]
    assert found("turn on the kitchen light", *LAMPS) == []


def test_equally_good_tools_are_all_named() -> None:
    assert found("turn on the light", *LAMPS) == ["living_room_light_on", "bedroom_light_on"]


def test_the_opposite_is_never_done() -> None:
    assert found("turn off the fan", tool("fan_turn_on")) == []
    assert found("stop the music", tool("music_play")) == []


def test_a_number_needs_a_tool_that_takes_one() -> None:
    assert found("set the volume to 30", tool("volume_up"), tool("volume_mute")) == []
    assert found("set the theme to 30", tool("set_theme", "", theme=one_of("light", "dark"))) == []


def test_a_question_never_changes_anything() -> None:
    assert found("what is the volume", tool("set_volume", "", volume=whole(0, 100))) == []


def test_a_command_is_never_answered_by_a_query() -> None:
    assert found("turn on the lamp", tool("lamp_get_state")) == []


def test_unknown_words_are_matched_with_the_tools_own_words() -> None:
    assert found("launch the rocket", tool("launch_rocket"), tool("vacuum_dock", "让扫地机器人回充")) == [
        "launch_rocket"
    ]
    assert found("扫地机器人回冲", tool("launch_rocket"), tool("vacuum_dock", "让扫地机器人回充")) == ["vacuum_dock"]


def test_a_passing_mention_in_a_description_is_not_enough() -> None:
    door = tool("door_camera_get_stream", "Shows who rings; works up to 90 percent humidity")
    assert found("what is the humidity", door) == []
    assert found("what is the humidity", tool("get_humidity", "")) == ["get_humidity"]


def test_a_description_in_the_other_language_is_enough() -> None:
    assert found("turn on the fan", tool("relay_on", "打开风扇")) == ["relay_on"]
    assert found("打开风扇", tool("relay_on", "Turns on the fan")) == ["relay_on"]


@pytest.mark.parametrize(
    "utterance",
    [
        "turn on the living room light",
        "打开客厅的灯",
        "what is the weather like tomorrow in london",
        "play some relaxing music",
        "set a timer for ten minutes",
        "set the alarm volume to 30",
        "turn the screen off",
        "what's the volume of a sphere",
        "I want to see a picture of a cat",
        "my phone battery died",
        "I had a bright idea yesterday",
        "how bright is the sun",
        "the theme of this book is love",
        "don't turn up the volume",
        "请不要拍照",
        "音乐的起源是什么",
        "帮我写一首关于屏幕的诗",
        "take it easy",
        "what time is it now",
        "hello",
        "",
    ],
)
def test_what_a_stock_device_cannot_do_finds_nothing(utterance: str) -> None:
    assert found(utterance, *stock_tools()) == []


def test_the_source_of_a_value_needs_no_argument_and_is_about_the_thing() -> None:
    setter = tool("ac_set_temperature", "", temperature=whole(16, 30))
    status, state = tool("get_device_status"), tool("ac_get_state")
    needy = tool("get_temperature", "", room=text())
    assert find_source(setter, [status, state, needy], ["temperature"]) is state
    assert find_source(setter, [needy], ["temperature"]) is None
    volume = tool("set_volume", "", volume=whole(0, 100))
    assert find_source(volume, [state, status], ["volume"]) is status


def test_a_switch_fits_on_and_off_only() -> None:
    power = tool("fan_power", "", on=switch())
    assert found("turn on the fan", power) == ["fan_power"]
    assert found("turn up the fan", power) == []
