import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core import toolbox
from fleet.core.ports import ToolCall
from fleet.core.shown_tools import LONGEST_DESCRIPTION
from fleet.core.toolbox import LARGEST_OFFERS, MOST_OFFERS, PROGRAM, Prepared, Refusal, Toolbox
from fleet.wire.mcp import ToolSpec
from tests.unit.core.schemas.test_cleaning import JSON, OBJECTS

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
    assert refusal.fault == "INVALID_TOOL_PARAMETERS"
    assert refusal.reason.startswith("error: ")


@pytest.mark.parametrize("arguments", ['{"volume":"30"}', '{"volume":30.0}'])
def test_harmless_slips_are_mended(arguments: str) -> None:
    assert prepare(arguments) == Prepared(VOLUME, {"volume": 30})


def test_an_argument_that_the_schema_neither_names_nor_forbids_is_sent() -> None:
    assert prepare('{"volume":30,"extra":[null]}') == Prepared(VOLUME, {"volume": 30, "extra": [None]})


def test_an_argument_that_the_schema_forbids_is_refused_by_name() -> None:
    closed = VOLUME.model_copy(update={"input_schema": {**VOLUME.input_schema, "additionalProperties": False}})
    refusal = prepare('{"volume":30,"extra":1}', closed)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "error: not done, argument 'extra' is not known; there are: volume"


def test_an_integer_that_no_parser_reads_as_a_number_is_not_sent() -> None:
    assert isinstance(prepare('{"volume":30,"extra":[1' + "0" * 400 + "]}"), Refusal)


def test_enums_are_kept() -> None:
    tool = ToolSpec(name="t", input_schema={"properties": {"theme": {"type": "string", "enum": ["light", "dark"]}}})
    assert isinstance(prepare('{"theme":"blue"}', tool), Refusal)
    assert prepare('{"theme":"dark"}', tool) == Prepared(tool, {"theme": "dark"})


def test_a_name_that_looks_like_anothers_mended_one_takes_no_place() -> None:
    mended = Toolbox([ToolSpec(name="a_b"), ToolSpec(name="a.b")]).offers[1].name
    box = Toolbox([ToolSpec(name=name) for name in (mended, "a_b", "a.b", "self.", "self.灯")])
    assert len({offer.name for offer in box.offers}) == 5
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", offer.name) for offer in box.offers)


def test_names_of_other_tools_are_not_taken() -> None:
    servers = {"get_weather", "audio_speaker_set_volume"}
    box = Toolbox([VOLUME, ToolSpec(name="get.weather"), ToolSpec(name="play")], taken=servers)
    names = [offer.name for offer in box.offers]
    assert not servers & set(names)
    assert names[2] == "play"
    prepared = box.prepare(ToolCall("c", names[0], '{"volume":30}'))
    assert prepared == Prepared(VOLUME, {"volume": 30})
    again = Toolbox([VOLUME, ToolSpec(name="get.weather"), ToolSpec(name="play")], taken=servers)
    assert [offer.name for offer in again.offers] == names, "another worker goes on with the same names"


@pytest.mark.parametrize("name", ["3d_print", "self.3d_print", "-x", "self.-"])
def test_names_begin_with_a_letter_or_an_underscore(name: str) -> None:
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_-]{0,63}", Toolbox([ToolSpec(name=name)]).offers[0].name)


def test_a_tool_without_a_description_is_described_by_its_name() -> None:
    assert Toolbox([ToolSpec(name="lamp.on")]).offers[0].description == "lamp.on"


def test_half_a_character_in_a_description_is_replaced() -> None:
    assert Toolbox([ToolSpec(name="t", description="a\ud83d")]).offers[0].description == "a?"


def test_what_is_offered_is_what_endpoints_take_and_what_is_checked_is_all_that_is_known() -> None:
    rule = {"type": "integer", "enum": [1, 2]}
    box = Toolbox([ToolSpec(name="t", input_schema={"properties": {"x": rule, "y": {"type": "object"}}})])
    assert box.offers[0].parameters["properties"]["x"] == {"type": "integer", "description": "One of: 1, 2."}
    assert isinstance(box.prepare(ToolCall("c", "t", '{"x": 3}')), Refusal)
    prepared = box.prepare(ToolCall("c", "t", '{"x": "2", "y": "{\\"a\\": 1}"}'))
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"x": 2, "y": {"a": 1}}


def test_programs_take_more_than_devices() -> None:
    tool = ToolSpec(name="t", input_schema={"properties": {"x": {}, "at": {"type": "integer"}}})
    arguments = json.dumps({"x": "好" * 20_000, "at": 1_700_000_000_000})
    assert isinstance(Toolbox([tool]).prepare(ToolCall("c", "t", arguments)), Refusal)
    assert isinstance(Toolbox([tool], limits=PROGRAM).prepare(ToolCall("c", "t", arguments)), Prepared)
    assert isinstance(Toolbox([tool], limits=PROGRAM).prepare(ToolCall("c", "t", '{"at":1e20}')), Refusal)


def test_a_tool_that_is_listed_twice_is_offered_once() -> None:
    assert len(Toolbox([VOLUME, VOLUME]).offers) == 1


def test_what_is_offered_is_bounded_and_what_is_left_out_counted() -> None:
    box = Toolbox([ToolSpec(name=f"self.{number}") for number in range(MOST_OFFERS + 7)])
    assert (len(box.offers), box.left_out) == (MOST_OFFERS, 7)
    box = Toolbox([ToolSpec(name=f"self.{number}", description="x" * 5000) for number in range(MOST_OFFERS)])
    assert all(len(offer.description) == LONGEST_DESCRIPTION for offer in box.offers)
    assert sum(len(offer.description) for offer in box.offers) < LARGEST_OFFERS
    assert box.left_out == MOST_OFFERS - len(box.offers) > 0


def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    refusal = Toolbox([VOLUME]).prepare(ToolCall("c", "self.reboot" * 99, "{}"))
    assert isinstance(refusal, Refusal)
    assert refusal.fault == "TOOL_NOT_FOUND"
    assert "TOOL_NOT_FOUND" in refusal.reason
    assert refusal.reason.endswith("there are: audio_speaker_set_volume")
    assert len(refusal.reason) < 200
    refusal = Toolbox([ToolSpec(name="a"), ToolSpec(name="b")]).prepare(ToolCall("c", "d", "{}"))
    assert isinstance(refusal, Refusal)
    assert refusal.reason.endswith("there are: a, b")


NO_JSON = [
    *('{"volume":NaN}', '{"volume":1e999}', '{"volume":"\\ud800"}', '{"volume":' + "9" * 5000 + "}"),
    *("[" * 5000, '{"a":' * 5000, "null", "\x00"),
]


@pytest.mark.parametrize("arguments", NO_JSON)
def test_arguments_that_are_no_json_are_refused(arguments: str) -> None:
    assert isinstance(prepare(arguments), Refusal)


def test_arguments_that_would_be_too_much_for_a_device_are_refused() -> None:
    tool = ToolSpec(name="t", input_schema={"properties": {"x": {}}})
    deep = "[" * 6 + "]" * 6
    for arguments in ({"x": "好" * 2000}, {"x": json.loads(deep)}):
        refusal = prepare(json.dumps(arguments), tool)
        assert isinstance(refusal, Refusal)
        assert "too long, nested too deeply" in refusal.reason
    assert isinstance(prepare(json.dumps({"x": json.loads(deep[1:-1])}), tool), Prepared)


def test_arguments_may_have_as_many_bytes_as_a_device_takes() -> None:
    tool = ToolSpec(name="t", input_schema={"properties": {"x": {}}})
    longest = json.dumps({"x": "y" * (4_000 - len('{"x": ""}'))})
    assert isinstance(prepare(longest, tool), Prepared)
    assert isinstance(prepare(longest.replace("yy", "yyy", 1), tool), Refusal)


def test_arguments_that_are_too_long_are_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(toolbox, "read_arguments", lambda text: read.append(text) or {})
    box = Toolbox([ToolSpec(name="t"), VOLUME])
    programs = Toolbox([ToolSpec(name="t")], limits=PROGRAM)
    for owner, longest in ((box, 8_000), (programs, 200_000)):
        refusal = owner.prepare(ToolCall("c", "t", "{}".ljust(longest + 1)))
        assert isinstance(refusal, Refusal)
        assert "too long" in refusal.reason
        assert read == []
        assert isinstance(owner.prepare(ToolCall("c", "t", "{}".ljust(longest))), Prepared)
        assert isinstance(owner.prepare(ToolCall("c", "t", '{"a":[' + "0," * 21_000 + "0]}")), Refusal)
        read.clear()


@given(OBJECTS, st.text(max_size=30) | JSON.map(json.dumps), st.text(min_size=1, max_size=80))
def test_no_tool_and_no_call_raises(schema: dict[str, object], arguments: str, name: str) -> None:
    box = Toolbox([ToolSpec(name=name, description=name, input_schema=schema), VOLUME])
    for offer in box.offers:
        assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", offer.name)
        box.prepare(ToolCall("c", offer.name, arguments))
    box.prepare(ToolCall("c", name, arguments))


@given(
    st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.sampled_from(["string", "integer", "number", "object"])
)
def test_arguments_grow_by_less_than_is_assumed_where_their_size_is_not_measured(
    arguments: dict[str, Any], wanted: str
) -> None:
    tool = ToolSpec(name="a", input_schema={"properties": {key: {"type": wanted} for key in arguments}})
    for text in (
        msgspec.json.encode(arguments).decode(),
        re.sub(r"\d+", "1e15", msgspec.json.encode(arguments).decode()),
    ):
        prepared = Toolbox([tool], limits=PROGRAM).prepare(ToolCall("c", "a", text))
        if isinstance(prepared, Prepared):
            written = json.dumps(prepared.arguments, ensure_ascii=False).encode("utf-8", "replace")
            assert len(written) <= toolbox.MOST_GROWTH * len(text)


def test_the_largest_arguments_are_measured() -> None:
    tool = ToolSpec(name="a", input_schema={})
    fitting, too_long = ('{"x":"%s"}' % ("x" * length) for length in (3_991, 3_992))
    assert isinstance(prepare(fitting, tool), Prepared)
    assert isinstance(prepare(too_long, tool), Refusal)
