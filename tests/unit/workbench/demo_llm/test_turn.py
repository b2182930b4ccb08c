import pytest

from fleet.workbench.demo_llm.results import ToolText
from fleet.workbench.demo_llm.schemas import Tool
from fleet.workbench.demo_llm.turn import MOST_ROUNDS, Call, Choice, Conversation, Done, reply
from tests.support.demo_tools import Calls, now, one_of, stock_tools, switch, talk, text, tool, whole

STATUS, VOLUME, BRIGHTNESS = "get_device_status", "audio_speaker_set_volume", "screen_set_brightness"
THEME, PHOTO = "screen_set_theme", "camera_take_photo"


def home() -> tuple[Tool, ...]:
    """Return what a whole home may offer; the words are those of its makers."""
    return (
        tool("light_control", "控制房间的灯", room=one_of("living_room", "bedroom", "kitchen"), on=switch()),
        tool("get_weather", "Get the weather forecast for a city", city=text("city name")),
        tool("music.play", "播放音乐", song=text("what to play")),
        tool("music.stop", "停止播放音乐"),
        tool("startTimer", "Start a countdown", seconds=whole(1, 86_400)),
        tool("alarm_set", "Set an alarm", time=text("HH:MM")),
        *stock_tools(),
    )


COMMANDS: list[tuple[str, Calls]] = [
    ("turn on the living room light", [("light_control", {"room": "living_room", "on": True})]),
    ("turn off the bedroom light", [("light_control", {"room": "bedroom", "on": False})]),
    ("set the volume to thirty percent", [(VOLUME, {"volume": 30})]),
    ("what time is it now", []),
    ("what is the weather like tomorrow in london", [("get_weather", {"city": "London"})]),
    ("play some relaxing music", [("music.play", {"song": "relaxing"})]),
    ("stop the music please", [("music.stop", {})]),
    ("set a timer for ten minutes", [("startTimer", {"seconds": 600})]),
    ("wake me up at seven thirty tomorrow morning", [("alarm_set", {"time": "07:30"})]),
    ("turn up the volume", [(STATUS, {}), (VOLUME, {"volume": 80})]),
    ("打开客厅的灯", [("light_control", {"room": "living_room", "on": True})]),
    ("关闭卧室的灯", [("light_control", {"room": "bedroom", "on": False})]),
    ("把音量调到百分之三十", [(VOLUME, {"volume": 30})]),
    ("现在几点了", []),
    ("明天北京的天气怎么样", [("get_weather", {"city": "北京"})]),
    ("播放一首轻松的音乐", [("music.play", {"song": "轻松"})]),
    ("停止播放音乐", [("music.stop", {})]),
    ("设置一个十分钟的倒计时", [("startTimer", {"seconds": 600})]),
    ("明天早上七点半叫我起床", [("alarm_set", {"time": "07:30"})]),
    ("声音大一点", [(STATUS, {}), (VOLUME, {"volume": 80})]),
]

HEARD: list[tuple[str, Calls]] = [
    ("打开客厅的动", [("light_control", {"room": "living_room", "on": True})]),
    ("关闭握势的灯", [("light_control", {"room": "bedroom", "on": False})]),
    ("把音量掉到30%", [(VOLUME, {"volume": 30})]),
    ("把音梁调到三十。", [(VOLUME, {"volume": 30})]),
    ("凉度调到五十", [(BRIGHTNESS, {"brightness": 50})]),
    ("把音量調到三十", [(VOLUME, {"volume": 30})]),
    ("Set the volumn to 30.", [(VOLUME, {"volume": 30})]),
    ("Set the brightnes to fifty-five.", [(BRIGHTNESS, {"brightness": 55})]),
    ("Turn On The Living Room Lights!", [("light_control", {"room": "living_room", "on": True})]),
    ("嗯，那个，把音量调到30吧", [(VOLUME, {"volume": 30})]),
]


@pytest.mark.parametrize(("utterance", "calls"), [*COMMANDS, *HEARD])
def test_spoken_commands_become_the_right_calls(utterance: str, calls: Calls) -> None:
    assert talk(utterance, home())[0] == calls


@pytest.mark.parametrize(
    ("utterance", "calls", "answer"),
    [
        ("Make it louder", [(STATUS, {}), (VOLUME, {"volume": 80})], "Okay, the volume is now 80."),
        (
            "Can you please turn the volume down a bit?",
            [(STATUS, {}), (VOLUME, {"volume": 60})],
            "Okay, the volume is now 60.",
        ),
        ("it's too dark", [(STATUS, {}), (BRIGHTNESS, {"brightness": 85})], "Okay, the screen brightness is now 85."),
        ("turn it up", [(STATUS, {}), (VOLUME, {"volume": 80})], "Okay, the volume is now 80."),
        ("mute", [(VOLUME, {"volume": 0})], "Okay, the volume is now 0."),
        ("what's the battery level", [(STATUS, {})], "The battery level is 80 percent."),
        ("are you charging", [(STATUS, {})], "The battery is not charging."),
        ("how loud are you", [(STATUS, {})], "The volume is 70."),
        ("volume", [(STATUS, {})], "The volume is 70."),
        ("switch to dark mode", [(THEME, {"theme": "dark"})], "Okay, the screen theme is now dark."),
        ("Turn off dark mode", [(THEME, {"theme": "light"})], "Okay, the screen theme is now light."),
        ("What do you see?", [(PHOTO, {"question": "What do you see?"})], "I see a cat."),
        ("把屏幕调亮一点", [(STATUS, {}), (BRIGHTNESS, {"brightness": 85})], "好的，屏幕亮度已经设为85。"),
        ("亮度加20", [(STATUS, {}), (BRIGHTNESS, {"brightness": 95})], "好的，屏幕亮度已经设为95。"),
        ("现在音量是多少", [(STATUS, {})], "我看看，音量是70。"),
        ("电池还有多少电", [(STATUS, {})], "我看看，电量是百分之80。"),
        ("切换到深色模式", [(THEME, {"theme": "dark"})], "好的，屏幕主题已经设为深色。"),
        ("给我拍一张照片", [(PHOTO, {"question": "给我拍一张照片"})], "I see a cat."),
        (
            "set the volume to 30 and the brightness to 50",
            [(VOLUME, {"volume": 30}), (BRIGHTNESS, {"brightness": 50})],
            "Okay, the volume is now 30. The screen brightness is now 50.",
        ),
        (
            "what's the volume and the battery level",
            [(STATUS, {})],
            "The volume is 70. The battery level is 80 percent.",
        ),
        ("set the volume", [], "What should the volume be? It can be from 0 to 100."),
        ("音量调一下", [], "音量要设成多少？可以从0到100。"),
    ],
)
def test_a_stock_device_is_operated_by_voice(utterance: str, calls: Calls, answer: str) -> None:
    assert talk(utterance, stock_tools()) == (calls, answer)


def test_the_general_status_is_told_in_words() -> None:
    calls, answer = talk("what's your status", stock_tools())
    assert calls == [(STATUS, {})]
    assert answer.startswith("The volume is 70. The brightness is 75. The theme is light.")


def test_other_schemas_work_the_same() -> None:
    ac = (
        tool("ac.set_temperature", "设置空调温度", temperature=whole(16, 30)),
        tool("ac.power", "开关空调", on=switch()),
        tool("ac.get_state", "查询空调状态"),
    )
    state = {"ac.get_state": '{"power": true, "temperature": 24}'}
    assert talk("温度调高一点", ac, answers=state) == (
        [("ac.get_state", {}), ("ac.set_temperature", {"temperature": 25})],
        "好的，空调温度已经设为25度。",
    )
    assert talk("what's the temperature of the AC", ac, answers=state)[1] == "The temperature is 24 degrees."
    assert talk("turn off the air conditioner", ac)[0] == [("ac.power", {"on": False})]
    fan = (tool("fanSetSpeed", "", speed=whole(1, 5)), tool("fanOff"))
    assert talk("把风速调到三档", fan)[0] == [("fanSetSpeed", {"speed": 3})]
    assert talk("关掉电风扇", fan)[0] == [("fanOff", {})]
    curtain = (tool("curtain", "0表示关闭，100表示打开", position=whole(0, 100)),)
    assert talk("open the curtain", curtain)[0] == [("curtain", {"position": 100})]
    assert talk("窗帘拉开一半", curtain)[0] == [("curtain", {"position": 50})]


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
    assert talk(utterance, stock_tools(), earlier=(earlier,), last_answer=last_answer)[0] == calls


def test_a_failed_source_ends_the_turn() -> None:
    answers = {STATUS: "error: not done, the device is not connected"}
    assert talk("turn up the volume", stock_tools(), answers=answers) == (
        [(STATUS, {})],
        "I could not set the volume. The reason given is: the device is not connected.",
    )


@pytest.mark.parametrize("status", ['{"battery": {"level": 3}}', '{"audio_speaker": {"volume": 4000}}', "no idea"])
def test_without_a_usable_current_value_it_asks(status: str) -> None:
    calls, answer = talk("turn up the volume", stock_tools(), answers={STATUS: status})
    assert calls == [(STATUS, {})]
    assert answer.endswith("Which value should it be?")


def test_one_of_two_calls_may_fail() -> None:
    _, answer = talk(
        "set the volume to 30 and the brightness to 50", stock_tools(), answers={BRIGHTNESS: "error: no backlight"}
    )
    assert (
        answer
        == "Okay, the volume is now 30. I could not set the screen brightness. The reason given is: no backlight."
    )


def test_an_unknown_outcome_is_called_unknown() -> None:
    _, answer = talk(
        "音量调到三十", stock_tools(), answers={VOLUME: "error: unknown whether it was done, no answer in time"}
    )
    assert answer == "我试着设置音量，但不知道是否成功。原因是：no answer in time。"


def test_tools_may_be_forbidden_forced_and_named() -> None:
    def calls(utterance: str, choice: Choice) -> tuple[Call, ...]:
        return reply(Conversation(utterance), stock_tools(), choice, now).calls

    assert calls("volume 30", Choice(allowed=False)) == ()
    assert calls("volume 30", Choice(required=True)) == (Call(VOLUME, {"volume": 30}),)
    assert calls("hello", Choice(required=True)) == (Call(STATUS, {}),)
    assert calls("hello", Choice(named=BRIGHTNESS)) == (Call(BRIGHTNESS, {"brightness": 0}),)
    both = "volume 30, brightness 50"
    assert len(calls(both, Choice())) == 2
    assert calls(both, Choice(parallel=False)) == (Call(VOLUME, {"volume": 30}),)


def test_after_one_of_two_sequential_calls_comes_the_other() -> None:
    done = (Done(VOLUME, {"volume": 30}, ToolText("true")),)
    said = reply(
        Conversation("volume 30, brightness 50", done=done, rounds=1), stock_tools(), Choice(parallel=False), now
    )
    assert said.calls == (Call(BRIGHTNESS, {"brightness": 50}),)


def test_rounds_have_an_end() -> None:
    said = reply(
        Conversation("volume 30", done=(Done(STATUS, {}, ToolText("true")),), rounds=MOST_ROUNDS),
        stock_tools(),
        Choice(),
        now,
    )
    assert not said.calls
    assert said.text


def test_results_without_offered_tools_are_still_told() -> None:
    done = (Done(VOLUME, {"volume": 30}, ToolText("true")),)
    assert reply(Conversation("volume 30", done=done, rounds=1), (), Choice(), now).text.startswith("Okay")


def test_equal_requests_get_equal_answers() -> None:
    assert [talk(utterance, home()) for utterance, _ in COMMANDS] == [
        talk(utterance, home()) for utterance, _ in COMMANDS
    ]


@pytest.mark.parametrize(
    "utterance",
    [
        "",
        "?",
        "...",
        "\U0001f600",
        "a" * 1000,
        "把" * 1000,
        "{}[]'`",
        *(f"音量{n * 400}" for n in "1一十万半"),
        "volume 1.5.7",
    ],
)
def test_odd_utterances_are_survived(utterance: str) -> None:
    calls, answer = talk(utterance, (tool("set_volume", "", volume={"type": "integer"}), *home()))
    assert len(calls) <= 1
    assert answer
