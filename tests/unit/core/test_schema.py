import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.schema import LARGEST_INTEGER, LONGEST_TEXT, MOST_PROPERTIES, MOST_RULES, clean, fit

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


def given_x(rule: Any, value: Any, **more: Any) -> Any:
    fitted = fit(one(rule, **more), {"x": value})
    return fitted if isinstance(fitted, str) else fitted.get("x", "left out")


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


@pytest.mark.parametrize(
    ("rule", "value", "sent"),
    [
        ({"type": "integer"}, "30", 30),
        ({"type": "integer"}, " +30 ", 30),
        ({"type": "integer"}, 30.0, 30),
        ({"type": "integer"}, "30.0", 30),
        ({"type": "integer"}, "123456789", 123456789),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, "5", "5"),
        ({"enum": ["a", 1]}, 1, 1),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2.0]', [1, 2]),
        ({"type": "object", "properties": {"y": {"type": "boolean"}}}, {"y": "true", "z": 1}, {"y": True, "z": 1}),
        ({}, {"any": [1]}, {"any": [1]}),
        ({"type": "integer"}, None, "left out"),
    ],
)
def test_harmless_slips_are_mended(rule: Any, value: Any, sent: Any) -> None:
    found = given_x(rule, value)
    assert found == sent
    assert type(found) is type(sent)


@pytest.mark.parametrize(
    ("rule", "value", "told"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 9}, 10, "must be a whole number from 0 to 9, but is 10"),
        ({"type": "integer", "minimum": 3}, 2, "must be a whole number of at least 3, but is 2"),
        ({"type": "integer", "maximum": 3}, 4, "must be a whole number of at most 3, but is 4"),
        ({"type": "integer"}, 1.5, "must be a whole number, but is 1.5"),
        ({"type": "integer"}, True, "must be a whole number, but is true"),
        ({"type": "integer"}, "loud", 'must be a whole number, but is "loud"'),
        ({"type": "integer"}, LARGEST_INTEGER + 1, "must be a whole number, but is 2147483648"),
        ({"type": "number"}, "9" * 99, f'must be a number, but is "{"9" * 59}…'),
        ({"type": "number"}, math.inf, "must be a number, but is Infinity"),
        ({"type": "number", "minimum": 0}, math.nan, "must be a number of at least 0, but is NaN"),
        ({"type": "boolean"}, 1, "must be true or false, but is 1"),
        ({"type": "string"}, ["a"], 'must be a text, but is ["a"]'),
        ({"type": "object"}, [], "must be an object, but is []"),
        ({"type": "object"}, "{", 'must be an object, but is "{"'),
        ({"type": "array"}, "a, b", 'must be a list, but is "a, b"'),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'must be one of ["a", "b"], but is "c"'),
        ({}, math.inf, "must be given, but is Infinity"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(rule: Any, value: Any, told: str) -> None:
    assert given_x(rule, value) == f"argument 'x' {told}"


@pytest.mark.parametrize("arguments", [{}, {"x": None}])
def test_what_is_missing_is_named(arguments: dict[str, Any]) -> None:
    schema = one({"type": "boolean"}, required=["x"])
    assert fit(schema, arguments) == "argument 'x' is missing; it must be true or false"


def test_what_the_schema_does_not_know_is_left_out() -> None:
    assert fit(one({}), {"x": 1, "y": 2}) == {"x": 1}


@settings(max_examples=300)
@given(OBJECTS, OBJECTS)
def test_no_schema_and_no_argument_raises(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    cleaned = clean(schema)
    json.dumps(cleaned, allow_nan=False)
    assert clean(cleaned) == cleaned
    fitted = fit(cleaned, arguments)
    assert isinstance(fitted, str) or set(fitted) <= set(cleaned["properties"])
