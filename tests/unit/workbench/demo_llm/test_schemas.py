import json

import pytest

from fleet.workbench.demo_llm.schemas import IN_DESCRIPTION, IN_NAME, LONGEST_DESCRIPTION, Tool, understand
from tests.support.demo_tools import one_of, text, tool, tools_named, whole


def choices(made: Tool) -> list[object]:
    return [choice.value for choice in made.properties[0].choices]


def test_a_name_says_more_than_a_description() -> None:
    fan = tool("fan_set", "Sets the speed.", value=whole(1, 5))
    assert (fan.strengths["fan"], fan.strengths["speed"]) == (IN_NAME, IN_DESCRIPTION)


def test_quoted_names_of_other_tools_say_nothing() -> None:
    setter = next(entry for entry in tools_named("stock") if entry.name == "audio_speaker_set_volume")
    assert "status" not in setter.strengths


@pytest.mark.parametrize(
    ("description", "values"),
    [
        ("The theme can be `light` or `dark`.", ["light", "dark"]),
        ("The device's theme, 'light' or 'dark'", ["light", "dark"]),
        ("What to see or hear", []),
        ("", []),
    ],
)
def test_values_are_found_in_descriptions(description: str, values: list[str]) -> None:
    assert choices(tool("do", "", kind=text(description))) == values


def test_beside_dark_light_is_no_lamp() -> None:
    theme = tool("set_theme", "", theme=one_of("light", "dark")).properties[0]
    assert [choice.concepts for choice in theme.choices] == [{"light_mode"}, {"dark_mode"}]


@pytest.mark.parametrize(
    ("name", "description", "reads"),
    [
        ("get_device_status", "", True),
        ("lamp.getState", "", True),
        ("battery", "Returns the battery level", True),
        ("battery", "查询电量", True),
        ("set_volume", "Returns the battery level", False),
        ("show_message", "Shows a message", False),
        ("lamp_turn_on", "", False),
    ],
)
def test_tools_that_only_tell_are_known(name: str, description: str, reads: bool) -> None:
    assert tool(name, description).read_only is reads


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"properties": None},
        {"properties": ["a"], "required": "a"},
        {"properties": {"a": None, "b": 3}},
        {"properties": {"a": {"type": 7, "enum": "x", "minimum": "0", "description": 5}}},
        {"properties": {"a": {"enum": [1, "b"]}}},
        {"properties": {"a": {"anyOf": [], "oneOf": [3]}}},
        {"properties": {"a": {"type": []}}, "required": [3]},
    ],
)
def test_odd_schemas_are_survived(parameters: dict[str, object]) -> None:
    assert understand("a", "b", json.dumps(parameters)).name == "a"


def test_optional_types_are_unfolded() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}}}
    (made,) = understand("x", "", json.dumps(schema)).properties
    assert (made.kind, made.maximum) == ("number", 9)


def test_a_huge_description_is_read_only_in_part() -> None:
    assert len(tool("a", "灯" * 100_000).description) == LONGEST_DESCRIPTION
