"""Tools for the demo model's tests: those of devices, of the server, and inventions that the model knows nothing of."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.schemas import Tool, understand
from fleet.workbench.demo_llm.turn import Conversation, reply
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.tools.board_tools import tools_of

STATUS = json.dumps(
    {
        "audio_speaker": {"volume": 70},
        "screen": {"brightness": 75, "theme": "light"},
        "battery": {"level": 80, "charging": False},
        "network": {"type": "wifi", "ssid": "Home", "signal": "strong"},
    }
)
ANSWERS = {
    "get_weather": '{"city": "Bonn", "condition": "Sunny", "temperature": 22, "humidity": 45}',
    "get_current_time": '{"date": "2025-11-21", "time": "15:05"}',
    "get_location": '{"city": "Bonn", "country": "Germany"}',
    "get_device_status": STATUS,
    "get_battery": '{"level": 85, "charging": false}',
    "ac.get_state": '{"power": true, "temperature": 24}',
    "lamp_get_state": '{"power": true}',
    "fan_get_state": '{"fan": {"isOn": true}}',
    "ac_get_state": '{"air_conditioner": {"switch": "off"}}',
    "heater_get_state": '{"heater": {"enabled": false}}',
    "outlet_get_state": '{"switched_on": true}',
    "camera_take_photo": '{"success": true, "response": "I see a cat."}',
    "take_photo": "I see a cat.",
    "list_supported_languages": "Chinese, English",
    "list_available_characters": "Captain Saltbeard, Pip the Robot",
}

Schema = dict[str, Any]
Calls = list[tuple[str, dict[str, Any]]]
TEXT: Schema = {"type": "string"}
SWITCH: Schema = {"type": "boolean"}


def now() -> datetime:
    return datetime(2025, 11, 21, 15, 5, tzinfo=UTC)


def whole(low: int, high: int, description: str = "") -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def offer(name: str, description: str = "", /, required: Sequence[str] | None = None, **properties: Schema) -> Schema:
    """Return a tool as a request offers it; without `required` all of its properties are."""
    needed = list(properties if required is None else required)
    schema = {"type": "object", "properties": properties, "required": needed}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def understood(offers: Sequence[Schema]) -> tuple[Tool, ...]:
    functions = [one["function"] for one in offers]
    return tuple(understand(one["name"], one["description"], json.dumps(one["parameters"])) for one in functions)


def tool(name: str, description: str = "", /, required: Sequence[str] | None = None, **properties: Schema) -> Tool:
    return understood([offer(name, description, required, **properties)])[0]


STOCK = [
    offer(
        "get_device_status",
        "Provides the real-time information of the device, including the current status of the audio speaker, screen, "
        "battery, network, etc.\nUse it to answer questions about the current condition, e.g. what the current volume "
        "is, and as the first step to turn up / down the volume.",
    ),
    offer(
        "audio_speaker_set_volume",
        "Set the volume of the audio speaker. If the current volume is unknown, call `self.get_device_status` first.",
        volume=whole(0, 100),
    ),
    offer("screen_set_brightness", "Set the brightness of the screen.", brightness=whole(0, 100)),
    offer("screen_set_theme", "Set the theme of the screen. It can be `light` or `dark`.", theme=TEXT),
    offer(
        "camera_take_photo",
        "Take a photo and explain it. Use this tool after the user asks you to see something.\nArgs:\n"
        "  `question`: The question that you want to ask about the photo.",
        question=TEXT,
    ),
]
TOOLS = {
    "none": [],
    "stock": STOCK,
    "home": [
        offer("light_control", "控制房间的灯", room=one_of("living_room", "bedroom", "kitchen"), on=SWITCH),
        offer("get_weather", "Get the weather forecast for a city", city=text("city name")),
        offer("music.play", "播放音乐", song=text("what to play")),
        offer("music.stop", "停止播放音乐"),
        offer("startTimer", "Start a countdown", seconds=whole(1, 86_400)),
        offer("alarm_set", "Set an alarm", time=text("HH:MM")),
        *STOCK,
    ],
    "board": [
        offer("reboot", "Restarts the device."),
        offer("upgrade_firmware", "Installs firmware from an address.", required=[], url=TEXT),
        offer("system_reconfigure_wifi", "Reconfigure the Wi-Fi: the device restarts into configuration mode."),
        offer("light_set_rgb", "Set the color of the light ring", r=whole(0, 255), g=whole(0, 255), b=whole(0, 255)),
        offer("chassis_switch_light_mode", "Switch the light effect of the chassis", light_mode=whole(1, 6)),
        *STOCK[:2],
    ],
    "python client": [
        offer("get_device_status", "Provides real-time system information: OS, CPU, memory, battery, volume."),
        offer("audio_speaker_set_volume", "Set the system speaker volume to an absolute value.", volume=whole(0, 100)),
        offer("application_launch", "Launch desktop applications by name.", app_name=TEXT),
        offer("timer_cancel_countdown", "Cancel an active countdown timer by its ID.", timer_id={"type": "integer"}),
        offer("music_player_search_and_play", "Search for a song and start playing it.", song_name=TEXT),
        offer("music_player_play_pause", "Toggle between play and pause states."),
        offer("music_player_stop", "Stop music playback completely."),
        offer("take_photo", "Take a photo and explain it.", question=TEXT),
    ],
    "climate": [
        offer("ac.set_temperature", "设置空调温度", temperature=whole(16, 30)),
        offer("ac.power", "开关空调", on=SWITCH),
        offer("ac.get_state", "查询空调状态"),
        offer("ac_set_mode", "Set the air conditioner's mode", mode=one_of("cool", "heat", "dry", "auto")),
        offer("fanSetSpeed", speed=whole(1, 5)),
        offer("fanOff"),
        offer("fan_turn_on"),
        offer("curtain", "0表示关闭，100表示打开", position=whole(0, 100)),
    ],
    "things": [
        offer("set_theme", "设置屏幕主题", theme_name=text("主题模式, 'light' 或 'dark'")),
        offer("Lamp.TurnOn", "打开灯"),
        offer("Lamp.TurnOff", "关闭灯"),
        offer("get_battery", "获取设备当前电量百分比"),
        offer("vacuum_dock", "让扫地机器人回充"),
        offer("set_light_color", "", color=text("hex, like #112233")),
        offer("robot_walk", "", required=[], steps=whole(1, 9), direction=one_of("forward", "backward")),
        offer("player", "", action=one_of("play", "pause", "next", "previous")),
        offer("door_unlock", "Unlocks the door"),
        offer("send_message", "", to=TEXT, words=TEXT),
        offer("volume_adjust", "", delta=whole(-100, 100)),
    ],
    "opposites": [
        offer("volume_up"),
        offer("fan_turn_on"),
        offer("music_play"),
        offer("lamp_get_state"),
        offer("set_theme", theme=one_of("light", "dark")),
        offer("relay_on", "打开加湿器"),
    ],
    "switches": [
        offer("fan_get_state"),
        offer("ac_get_state"),
        offer("heater_get_state"),
        offer("outlet_get_state"),
    ],
    "rooms": [
        offer("living_room_light_on"),
        offer("bedroom_light_on"),
        offer("bedroom_light_off"),
        offer("launch_rocket"),
        offer("set_scene", scene=one_of("movie", "reading", "sleep")),
    ],
}


@cache
def tools_named(name: str) -> tuple[Tool, ...]:
    """Return the tools of `TOOLS`, or those of the simulated device, as the worker names them."""
    if name != "sim":
        return understood(TOOLS[name])
    listed = [one.describe() for one in tools_of(find_profile("P1")) if not one.user_only]
    names = [str(one["name"]).removeprefix("self.").replace(".", "_") for one in listed]
    return tuple(
        understand(name, str(one["description"]), json.dumps(one["inputSchema"]))
        for name, one in zip(names, listed, strict=True)
    )


def talk(
    utterance: str,
    tools: tuple[Tool, ...],
    *,
    answers: Mapping[str, str] | None = None,
    earlier: tuple[str, ...] = (),
    last_answer: str = "",
) -> tuple[Calls, str]:
    """Run one turn to its end; return the calls and the answer."""
    conversation = Conversation(utterance, earlier, last_answer)
    while (message := reply(conversation, tools, now)).calls:
        told = {**ANSWERS, **(answers or {})}
        done = tuple((call, ToolResult(told.get(call.name, "true"))) for call in message.calls)
        conversation = Conversation(utterance, earlier, last_answer, conversation.done + done)
        assert len(conversation.done) < 8, conversation.done
    return [(call.name, dict(call.arguments)) for call, _ in conversation.done], message.text
