import pytest

from fleet.workbench.demo_llm.plan import Missing, Plan, Which, force, make_plan
from fleet.workbench.demo_llm.schemas import Tool
from tests.support.demo_tools import one_of, stock_tools, switch, text, tool, whole


def steps(plan: Plan) -> list[tuple[str, dict[str, object]]]:
    assert isinstance(plan, tuple)
    return [(step.tool.name, dict(step.arguments)) for step in plan]


BOTH = [("audio_speaker_set_volume", {"volume": 30}), ("screen_set_brightness", {"brightness": 50})]


@pytest.mark.parametrize(
    "utterance",
    [
        "set the volume to 30 and the brightness to 50",
        "音量调到30，亮度调到50",
        "音量30亮度50",
        "set volume 30 brightness 50",
        "Set the volume to thirty, then set the brightness to fifty.",
    ],
)
def test_several_wishes_are_several_steps(utterance: str) -> None:
    assert steps(make_plan(utterance, stock_tools())) == BOTH


def test_one_wish_in_two_clauses_is_one_step() -> None:
    asked = "take a photo and tell me what you see"
    assert steps(make_plan(asked, stock_tools())) == [("camera_take_photo", {"question": asked})]


def test_two_clauses_that_mean_the_same_call_are_one_step() -> None:
    asked = "拍张照片，看看这是什么"
    ((name, arguments),) = steps(make_plan(asked, stock_tools()))
    assert (name, arguments["question"]) == ("camera_take_photo", "拍张照片,看看这是什么")


def test_one_tool_may_be_called_twice_with_other_arguments() -> None:
    lamp = tool("light", "", room=one_of("living_room", "kitchen"), on=switch())
    plan = make_plan("turn on the living room light and turn off the kitchen light", [lamp])
    assert [arguments for _, arguments in steps(plan)] == [
        {"room": "living_room", "on": True},
        {"room": "kitchen", "on": False},
    ]


def test_half_a_sentence_is_never_carried_out() -> None:
    assert make_plan("set the volume to 30 and order two pizzas from the corner shop", stock_tools()) is None


@pytest.mark.parametrize(
    "utterance", ["小智，音量调到20", "Alexa, set the volume to 20", "Hello, set the volume to 20"]
)
def test_a_name_in_front_is_dropped(utterance: str) -> None:
    assert steps(make_plan(utterance, stock_tools())) == [("audio_speaker_set_volume", {"volume": 20})]


def test_a_relative_change_begins_with_the_source() -> None:
    plan = make_plan("make it louder", stock_tools())
    assert isinstance(plan, tuple)
    (step,) = plan
    assert step.source is not None
    assert (step.source.name, step.change is not None) == ("get_device_status", True)


def test_without_a_source_the_value_is_asked_for() -> None:
    setter = tool("set_volume", "", volume=whole(0, 100))
    assert make_plan("make it louder", [setter]) == Missing(setter, setter.properties[0])


def test_an_argument_that_is_a_change_itself_needs_no_source() -> None:
    nudge = tool("volume_adjust", "", delta=whole(-100, 100))
    assert steps(make_plan("turn the volume down by 20", [nudge])) == [("volume_adjust", {"delta": -20})]


def test_doubt_is_a_question() -> None:
    lamps: tuple[Tool, ...] = (tool("bedroom_light_on"), tool("kitchen_light_on"))
    assert make_plan("turn on the light", lamps) == Which(lamps)
    weather = tool("get_weather", "", city=text())
    assert make_plan("what's the weather", [weather]) == Missing(weather, weather.properties[0])


def test_a_forced_call_takes_what_was_said_and_the_least_of_the_rest() -> None:
    made = tool("x", "", volume=whole(5, 9), mode=one_of("a", "b"), on=switch(), note=text())
    step = force("hello there", made)
    assert dict(step.arguments) == {"volume": 5, "mode": "a", "on": False, "note": "hello there"}
    assert dict(force("volume 7", made).arguments)["volume"] == 7
