import pytest

from fleet.core.ports import ToolCall
from fleet.core.toolbox import Prepared, Refusal, Toolbox
from fleet.wire.mcp import ToolSpec

VOLUME = ToolSpec(
    name="self.audio_speaker.set_volume",
    description="d",
    input_schema={
        "type": "object",
        "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    },
)


def prepare(arguments: str, tool: ToolSpec = VOLUME) -> Prepared | Refusal:
    box = Toolbox([tool])
    return box.prepare(ToolCall("c", box.offers[0].name, arguments))


def test_names_fit_the_model_and_lead_back() -> None:
    box = Toolbox([VOLUME])
    assert box.offers[0].name == "audio_speaker_set_volume"
    prepared = box.prepare(ToolCall("c", "audio_speaker_set_volume", '{"volume":30}'))
    assert prepared == Prepared(VOLUME, {"volume": 30})


def test_names_that_would_collide_or_are_too_long_stay_apart() -> None:
    box = Toolbox([ToolSpec(name=name) for name in ("a.b", "a_b", "self.a.b", "x" * 200, "x" * 201, "灯.开")])
    names = [offer.name for offer in box.offers]
    assert len(set(names)) == 6
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isascii() for name in names)


def test_tools_for_people_are_neither_offered_nor_callable() -> None:
    box = Toolbox([ToolSpec(name="self.reboot", user_only=True)])
    assert box.offers == ()
    assert isinstance(box.prepare(ToolCall("c", "reboot", "{}")), Refusal)


@pytest.mark.parametrize(
    "arguments",
    ["", "{}", "[1]", "{", '{"volume":"loud"}', '{"volume":101}', '{"volume":-1}', '{"volume":true}', '{"volume":1.5}'],
)
def test_arguments_outside_the_schema_are_refused_in_words(arguments: str) -> None:
    refusal = prepare(arguments)
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith("error: ")


@pytest.mark.parametrize("arguments", ['{"volume":"30"}', '{"volume":30.0}', '{"volume":30,"extra":1}'])
def test_harmless_slips_are_mended(arguments: str) -> None:
    assert prepare(arguments) == Prepared(VOLUME, {"volume": 30})


def test_enums_are_kept() -> None:
    tool = ToolSpec(name="t", input_schema={"properties": {"theme": {"type": "string", "enum": ["light", "dark"]}}})
    assert isinstance(prepare('{"theme":"blue"}', tool), Refusal)
    assert prepare('{"theme":"dark"}', tool) == Prepared(tool, {"theme": "dark"})
