import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.schemas.cleaning import LONGEST_TEXT, MOST_PROPERTIES, MOST_RULES, clean

KEYS = ["type", "properties", "required", "enum", "items", "minimum", "maximum", "default", "description", "$ref"]
TYPES = ["integer", "string", "object", "array", "boolean", "number", "a", "b"]
WORDS = st.sampled_from([*KEYS, *TYPES])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=6)


def one(rule: Any, **more: Any) -> dict[str, Any]:
    return clean({"properties": {"x": rule}, **more})


def test_what_firmware_writes_is_kept() -> None:
    schema = {
        "type": "object",
        "properties": {
            "volume": {"type": "integer", "minimum": 0, "maximum": 100, "default": 50, "description": "loudness"},
            "theme": {"type": "string", "enum": ["light", "dark"]},
        },
        "required": ["volume"],
    }
    assert clean(schema) == schema


@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {"properties": 5, "required": 5},
        {"properties": [], "required": {}},
        {"type": "string", "required": [{}, None, 1, "x" * 99], "properties": {"": {}, "y" * 99: {}}},
        {"$ref": "#/a", "anyOf": [{}], "additionalProperties": False, "$defs": {"a": {}}},
    ],
)
def test_what_is_no_schema_of_an_object_becomes_an_empty_one(hostile: dict[str, Any]) -> None:
    assert clean(hostile) == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (True, {}),
        ({"type": "colour"}, {}),
        ({"type": ["null", "integer"]}, {"type": "integer"}),
        ({"type": "null | Integer|string"}, {"type": "integer"}),
        ({"type": [[]]}, {}),
        ({"$ref": "#", "oneOf": [1]}, {}),
        ({"enum": ["a", {}]}, {}),
        ({"enum": [*range(100)]}, {}),
        ({"enum": []}, {}),
        ({"minimum": math.nan, "maximum": "9", "default": math.inf}, {}),
        ({"minimum": True}, {}),
        ({"description": 5}, {}),
        ({"description": "x" * 9000}, {"description": "x" * LONGEST_TEXT}),
        ({"description": "a\ud800", "enum": ["\ud800"], "default": "\ud800"}, {"description": "a?", "default": "?"}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"enum": ["a", None, "a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, True, 1.0, 1]}, {"enum": [1, True, 1.0]}),
        ({"const": 5}, {"type": "integer", "enum": [5]}),
        ({"const": {"a": 1}}, {}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": [{"type": "string"}, {}]}, {"type": "array", "items": {"type": "string"}}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3}, {"type": "integer", "default": 3}),
        ({"oneOf": [{"type": "null"}, {"anyOf": [{"type": "string"}]}]}, {"type": "string"}),
        ({"allOf": [{"type": "boolean"}], "description": "d"}, {"type": "boolean", "description": "d"}),
        ({"anyOf": [{"const": "a"}, {"enum": ["b", "a"]}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {}),
        ({"minimum": 10**400, "maximum": 5}, {"maximum": 5}),
        ({"type": "array", "items": {"type": "integer", "$ref": 1}}, {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_of_a_rule_only_what_is_plain_is_kept(rule: Any, kept: dict[str, Any]) -> None:
    assert one(rule)["properties"]["x"] == kept


def test_a_required_argument_without_a_rule_may_be_anything() -> None:
    assert clean({"required": ["x", "x"]}) == {"type": "object", "properties": {"x": {}}, "required": ["x"]}


def test_references_are_followed() -> None:
    schema = {
        "$ref": "#/$defs/Arguments",
        "$defs": {
            "Arguments": {"type": "object", "properties": {"mode": {"$ref": "#/definitions/a~1b", "default": "x"}}},
        },
        "definitions": {"a/b": {"$ref": "#/definitions/c"}, "c": {"type": "string", "enum": ["x", "y"]}},
    }
    mode = {"type": "string", "enum": ["x", "y"], "default": "x"}
    assert clean(schema) == {"type": "object", "properties": {"mode": mode}}


@pytest.mark.parametrize("reference", ["#/$defs/no", "#/$defs/loop", "http://elsewhere/schema", "#", "#/" + "a/" * 999])
def test_a_reference_that_leads_nowhere_is_no_rule(reference: str) -> None:
    schema = {"properties": {"x": {"$ref": reference}}, "$defs": {"loop": {"$ref": "#/$defs/loop"}}}
    assert clean(schema) == {"type": "object", "properties": {"x": {}}}


def test_a_schema_that_refers_to_itself_is_bounded() -> None:
    wide = {"type": "object", "properties": {str(number): {"$ref": "#/$defs/wide"} for number in range(60)}}
    cleaned = clean({"properties": {"x": {"$ref": "#/$defs/wide"}}, "$defs": {"wide": wide}})
    assert json.dumps(cleaned).count("type") <= MOST_RULES + 1


def test_schemas_are_bounded_in_depth_and_number() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    assert json.dumps(clean(deep)).count("properties") <= 5
    assert len(clean({"properties": {str(n): {} for n in range(1000)}})["properties"]) == MOST_PROPERTIES


def test_a_schema_of_a_million_characters_is_looked_at_in_part() -> None:
    big = {"properties": {f"{'n' * 70}{n}": {} for n in range(13_000)}, **{f"k{n}": 1 for n in range(5_000)}}
    uses = {str(n): {"type": "object", "allOf": [{"$ref": "#/$defs/big"}]} for n in range(60)}
    cleaned = clean({"properties": uses, "$defs": {"big": big}})
    assert set(cleaned["properties"]) == set(uses)
    assert len(json.dumps(cleaned)) < 10_000


@settings(max_examples=2 * settings().max_examples)
@given(OBJECTS)
def test_no_schema_raises(schema: dict[str, Any]) -> None:
    cleaned = clean(schema)
    json.dumps(cleaned, allow_nan=False)
    assert clean(cleaned) == cleaned
