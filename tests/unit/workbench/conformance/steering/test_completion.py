import pytest

from fleet.workbench.conformance.steering.completion import find_tool, tool_names, write_call

OFFERED = ["self_led_on", "device__self_audio_speaker_set_volume", "other_led_on"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("self.led.on", "self_led_on"),
        ("self.audio_speaker.set_volume", "device__self_audio_speaker_set_volume"),
        ("self_led_on", "self_led_on"),
        ("self.reboot", "self.reboot"),
        ("led_on", "self_led_on"),
    ],
)
def test_a_tool_is_called_by_the_name_under_which_it_is_offered(name: str, found: str) -> None:
    assert find_tool(name, OFFERED) == found
    assert find_tool(name, []) == name


def test_the_tool_with_the_very_letters_goes_before_a_longer_one() -> None:
    assert find_tool("led.on", ["self_led_on", "led_on"]) == "led_on"


def test_arguments_are_written_as_json_or_as_they_are() -> None:
    assert write_call(("a", {"x": "长", "y": None}), []) == ("a", '{"x": "长", "y": null}')
    assert write_call(("a", "{broken"), []) == ("a", "{broken")


def test_names_of_offered_tools_are_read_where_there_are_any() -> None:
    tools = [{"type": "function", "function": {"name": "a"}}, {"type": "function"}, {"function": {"x": 1}}]
    assert tool_names(tools) == ["a"]  # type: ignore[arg-type]  # literals are inferred narrower than JSON
