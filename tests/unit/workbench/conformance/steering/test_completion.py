import json

import pytest

from fleet.workbench.conformance.steering.completion import Completion, find_tool, tool_names, write_call

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


def test_pieces_join_to_the_whole() -> None:
    text = " Scene 137: 你好，世界！\n  internationalisation ends. "
    completion = Completion("1", "m", text, (("a", '{"x": "0123456789"}'), ("b", "")), 3)
    said, arguments = "", {0: "", 1: ""}
    names: dict[int, str] = {}
    for chunk in (completion.opening(), *completion.pieces(), *completion.closing(with_usage=False)):
        assert json.loads(json.dumps(chunk))["object"] == "chat.completion.chunk"
        delta = json.loads(json.dumps(chunk))["choices"][0]["delta"]
        said += delta.get("content") or ""
        for call in delta.get("tool_calls", []):
            arguments[call["index"]] += call["function"]["arguments"]
            names.setdefault(call["index"], call["function"].get("name"))
    assert said == text
    assert arguments == {0: '{"x": "0123456789"}', 1: ""}
    assert names == {0: "a", 1: "b"}
    message = completion.whole()["choices"][0]["message"]  # type: ignore[index,call-overload]  # JSON of known shape
    assert message["content"] == text  # type: ignore[index,call-overload]
    assert completion.finish == "tool_calls"
