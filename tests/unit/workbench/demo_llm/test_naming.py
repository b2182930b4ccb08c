import pytest

from fleet.workbench.demo_llm.naming import say_keys, say_subject, say_tool, say_value
from fleet.workbench.demo_llm.schemas import Tool
from tests.support.demo_tools import one_of, stock_tools, switch, tool, whole


@pytest.mark.parametrize(
    ("made", "english", "chinese"),
    [
        (tool("self_lamp_turn_on"), "turn on the lamp", "打开灯"),
        (tool("fan.set_speed", "", speed=whole(1, 5)), "set the fan speed", "设置风扇速度"),
        (tool("volume_up"), "turn up the volume", "增加音量"),
        (tool("launch_rocket"), "launch the rocket", "开始rocket"),
        (tool("vacuum_dock", "让扫地机器人回充"), "use vacuum dock", "让扫地机器人回充"),
        (tool("vacuum_dock", "Send the vacuum home."), "send the vacuum home", "使用扫地机dock"),
        (stock_tools()[0], "tell the device status", "查询设备状态"),
        (stock_tools()[4], "take a photo", "拍照片"),
    ],
)
def test_tools_are_said_as_what_they_do(made: Tool, english: str, chinese: str) -> None:
    assert (say_tool(made, "en"), say_tool(made, "zh")) == (english, chinese)


def test_a_subject_holds_the_room_and_the_thing() -> None:
    made = tool("light_control", "", room=one_of("kitchen", "bedroom"), on=switch())
    given = {"room": "kitchen", "on": True}
    assert say_subject(made, None, given, "en") == "the kitchen light"
    assert say_subject(made, None, given, "zh") == "厨房灯"


def test_values_are_said_by_what_they_belong_to() -> None:
    assert say_value("light", ("theme",), "zh") == "浅色"
    assert say_value(80, ("battery",), "en") == "80 percent"
    assert say_value(26.0, ("temperature",), "zh") == "26度"
    assert say_value("living_room", (), "en") == "living room"
    assert say_value("MyWifi_5G", ("network",), "en") == "MyWifi_5G"


def test_keys_are_said_in_the_users_language() -> None:
    assert say_keys(["battery", "level"], "en") == "battery level"
    assert say_keys(["battery", "level"], "zh") == "电量"
    assert say_keys(["frobnication"], "zh") == "frobnication"
