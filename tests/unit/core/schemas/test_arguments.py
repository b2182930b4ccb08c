"""fit, and the validation behind it."""

import json
import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.schemas import keywords
from fleet.core.schemas.arguments import LARGEST_INTEGER, fit
from fleet.core.schemas.validator import DEEPEST, MOST_STEPS, SchemaValidator
from tests.support.every import for_every
from tests.unit.core.schemas.test_cleaning import OBJECTS

JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)

DESCRIBING = """
title description default examples example deprecated readOnly writeOnly nullable x-order
$comment $anchor $defs definitions contentMediaType contentEncoding
"""
"""Keywords that forbid nothing (JSON Schema 2020-12, core 8 and validation 8 and 9), and those of OpenAPI."""


def fit_x(rule: Any, value: Any, **more: Any) -> Any:
    """Return what is sent for one argument, or what the model is told."""
    fitted = fit({"type": "object", "properties": {"x": rule}, **more}, {"x": value})
    return fitted if isinstance(fitted, str) else fitted.get("x", "not sent")


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "object"}, {"a": 1, "b": [None]}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"red": 1, "blue": 2}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "x", "b": {"c": 1}}),
        ({"type": "object", "patternProperties": {"^s_": {"type": "string"}}}, {"s_a": "x"}),
        ({"type": "object", "patternProperties": {"^s_": {}}, "additionalProperties": False}, {"s_a": "x"}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "many"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "30"),
        ({"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}, [1, 2]),
        ({"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 5}]}, 3),
        ({"type": ["integer", "null"]}, None),
        ({"type": ["integer", "string"]}, "30"),
        ({"type": "string|number"}, 1.5),
        ({"type": "string", "nullable": True}, None),
        ({"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]}, None),
        ({"enum": ["a", None]}, None),
        ({"const": {"a": [1]}}, {"a": [1]}),
        ({"enum": [[1, 2], "all"]}, [3]),
        ({"not": {"type": "integer"}}, "x"),
        ({"not": {"pattern": "(a+)+$"}}, "aaaa"),
        ({"not": {"uniqueItems": True}}, [1, 2]),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "a$"}]}, "b"),
        ({"if": {"type": "string"}, "then": False}, "x"),
        ({"type": "colour"}, "red"),
        ({"$ref": "https://example.com/colour.json"}, {"any": "thing"}),
        ({"$ref": "#/$defs/none"}, 5),
        ({"$id": "https://example.com/", "$ref": "#/properties/x", "type": "string"}, 5),
        (True, {"a": [1, None]}),
        ("no schema", 5),
    ],
)
def test_what_a_schema_allows_and_what_cannot_be_validated_is_sent_as_it_is(rule: Any, value: Any) -> None:
    sent = fit_x(rule, value)
    assert sent == value
    assert type(sent) is type(value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "integer"}, "x"),
        ({"enum": [1, 2]}, 3),
        ({"const": 1}, 2),
        ({"minimum": 1}, 0),
        ({"maximum": 1}, 2),
        ({"exclusiveMinimum": 1}, 1),
        ({"exclusiveMaximum": 1}, 1),
        ({"multipleOf": 5}, 7),
        ({"minLength": 2}, "x"),
        ({"maxLength": 1}, "xy"),
        ({"minItems": 1}, []),
        ({"maxItems": 1}, [1, 2]),
        ({"minProperties": 1}, {}),
        ({"maxProperties": 0}, {"a": 1}),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}),
        ({"additionalProperties": False}, {"a": 1}),
        ({"required": ["a"]}, {}),
        ({"items": {"type": "integer"}}, ["x"]),
        ({"prefixItems": [{"type": "integer"}]}, ["x"]),
        ({"allOf": [{}, {"type": "integer"}]}, "x"),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "x"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1),
        ({"not": {"type": "string"}}, "x"),
        ({"not": {"uniqueItems": False}}, [1, 1]),
        ({"$ref": "#/$defs/whole"}, "x"),
        ({"$ref": "#/$defs/a~1b~0c"}, "x"),
        ({"$ref": "#/$defs/many/1"}, "x"),
    ],
)
def test_what_a_keyword_forbids_is_a_fault(rule: Any, value: Any) -> None:
    whole = {"type": "integer"}
    definitions = {"whole": whole, "a/b~c": whole, "many": [{}, whole]}
    schema = {"properties": {"x": rule}, "$defs": definitions}
    assert len(SchemaValidator(schema, LARGEST_INTEGER).find_faults({"x": value})) == 1


@for_every("word", DESCRIBING.split())
def test_what_a_keyword_only_describes_hides_no_fault(word: str) -> None:
    schema = {"properties": {"x": {"not": {"type": "string", word: "anything"}}}}
    assert len(SchemaValidator(schema, LARGEST_INTEGER).find_faults({"x": "x"})) == 1


def test_the_model_reads_all_faults_in_one_line() -> None:
    rule = {"type": "integer"}
    told = fit({"properties": {"x": rule, "y": rule}}, {"x": "many", "y": "few"})
    assert isinstance(told, str)
    first, second = told.split("; ")
    assert first.replace("x", "y", 1).replace("many", "few") == second


def test_arguments_that_no_rule_names_are_sent() -> None:
    assert fit({"properties": {"x": {}}}, {"x": 1, "y": {"z": None}}) == {"x": 1, "y": {"z": None}}
    assert fit({}, {"y": 2, "z" * 5000: 1}) == {"y": 2, "z" * 5000: 1}


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
        ({"type": "boolean"}, "false", False),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, "5", "5"),
        ({"enum": ["a", 1]}, 1, 1),
        ({"enum": ["a", 1]}, "1", 1),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2.0]', [1, 2]),
        ({"type": "array", "items": {"type": "object"}}, ['{"a": 1}'], [{"a": 1}]),
        ({"type": "object", "properties": {"y": {"type": "boolean"}}}, {"y": "true", "z": 1}, {"y": True, "z": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "30", 30),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
        ({"type": ["null", "integer"]}, 3.0, 3),
        (
            {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
            '{"b": 1}',
            {"b": 1},
        ),
        ({"$ref": "#/$defs/level"}, "7", 7),
        ({"type": "array", "items": {"type": "integer"}}, ["1"] * 500, [1] * 500),
        ({"type": "integer"}, None, "not sent"),
    ],
)
def test_harmless_slips_are_mended(rule: Any, value: Any, sent: Any) -> None:
    found = fit_x(rule, value, **{"$defs": {"level": {"type": "integer"}}})
    assert found == sent
    assert type(found) is type(sent)


@pytest.mark.parametrize("word", ["items", "prefixItems"])
def test_a_list_may_have_a_rule_for_each_place(word: str) -> None:
    rule = {"type": "array", word: [{"type": "integer"}, {"type": "boolean"}]}
    assert fit_x(rule, ["1", "true", "any"]) == [1, True, "any"]
    assert fit_x(rule, ["1"]) == [1]
    assert fit_x(rule, [1, "loud"]) == "argument 'x.1' must be true or false, but is \"loud\""


def test_a_pointer_leads_into_lists() -> None:
    both = {"allOf": [{"type": "integer"}, {"type": "boolean"}]}
    assert fit_x({"$ref": "#/$defs/both/allOf/1"}, "true", **{"$defs": {"both": both}}) is True
    assert fit_x({"$ref": "#/$defs/both/allOf/2"}, "true", **{"$defs": {"both": both}}) == "true"


def test_mending_changes_nothing_of_what_the_model_wrote() -> None:
    written = {"x": {"y": "1"}}
    schema = {"properties": {"x": {"properties": {"y": {"type": "integer"}}}}}
    assert fit(schema, written) == {"x": {"y": 1}}
    assert written == {"x": {"y": "1"}}


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
        ({"type": "integer", "multipleOf": 5}, 7, "must be a whole number in steps of 5, but is 7"),
        ({"type": "number"}, "9" * 99, f'must be a number, but is "{"9" * 59}…'),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "must be a number above 0, but is 0"),
        ({"type": "boolean"}, 1, "must be true or false, but is 1"),
        ({"type": "string"}, ["a"], 'must be a text, but is ["a"]'),
        ({"type": "string", "maxLength": 2}, "abc", "must be a text with at most so many characters: 2, but is"),
        ({"type": "object"}, [], "must be an object, but is []"),
        ({"type": "object"}, "{", 'must be an object, but is "{"'),
        ({"type": "array"}, "a, b", 'must be a list, but is "a, b"'),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'must be one of ["a", "b"], but is "c"'),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "loud", "must be a whole number or true or false, but"),
        ({"type": ["integer", "null"], "maximum": 5}, 6, "must be a whole number of at most 5, but is 6"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "must be given, but is 1"),
    ],
)
def test_what_is_wrong_is_refused_with_what_would_be_right(rule: Any, value: Any, told: str) -> None:
    assert fit_x(rule, value).startswith(f"argument 'x' {told}")


def test_wrong_arguments_are_told_by_their_names() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"items": {"properties": {"c": {"type": "boolean"}}}}},
        "additionalProperties": False,
    }
    told = fit(schema, {"a": "loud", "b": [{"c": 5}], "e": 1})
    assert isinstance(told, str)
    assert told.count("argument ") == 3
    assert "argument 'a' must be a whole number, but is \"loud\"" in told
    assert "argument 'b.0.c' must be true or false, but is 5" in told
    assert fit(schema, {"a": 1, "e": 1}) == "argument 'e' is not known; there are: a, b"
    assert fit({**schema, "required": ["b"]}, {"a": 1}) == "argument 'b' is missing; it must be given"


def test_alternatives_of_what_is_required_are_told() -> None:
    schema = {"anyOf": [{"required": ["place"]}, {"required": ["lat", "lon"]}]}
    told = fit(schema, {"lat": 1})
    assert (
        told
        == "the arguments do not fit: argument 'place' is missing; it must be given, or argument 'lon' is missing; "
        + ("it must be given")
    )
    assert fit(schema, {"place": "Paris"}) == {"place": "Paris"}


@pytest.mark.parametrize("arguments", [{}, {"x": None}])
def test_what_is_missing_is_named(arguments: dict[str, Any]) -> None:
    schema = {"properties": {"x": {"type": "boolean"}}, "required": ["x"]}
    assert fit(schema, arguments) == "argument 'x' is missing; it must be true or false"


def test_a_name_that_models_are_not_shown_is_not_required_of_them() -> None:
    name = "x" * 5000
    assert fit({"properties": {name: {"type": "integer"}}, "required": [name]}, {}) == {}
    told = fit({"properties": {name: {"type": "integer"}}}, {name: "loud"})
    assert isinstance(told, str)
    assert len(told) < 300


def _nested(branches: int, levels: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"type": "null"}
    for _ in range(levels):
        rule = {"anyOf": [{"allOf": [rule]} for _ in range(branches)]}
    return rule


def hostile() -> list[tuple[str, dict[str, Any], Any]]:
    schemas: dict[str, tuple[dict[str, Any], Any]] = {
        "a pattern that backtracks": ({"properties": {"x": {"pattern": "(a+)+$"}}}, "a" * 60 + "!"),
        "such a name pattern": ({"properties": {"x": {"patternProperties": {"(a+)+$": {}}}}}, {"a" * 60 + "!": 1}),
        "itself": ({"$ref": "#"}, 1),
        "itself, twice": ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
        "itself as alternatives": ({"anyOf": [{"$ref": "#"}] * 50, "oneOf": [{"$ref": "#"}] * 50}, 1),
        "itself negated": ({"not": {"$ref": "#"}}, 1),
        "a ring": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 1),
        "dynamic": ({"$dynamicRef": "#node", "$dynamicAnchor": "node", "$recursiveRef": "#"}, 1),
        "wide and deep": ({"properties": {"x": _nested(10, 12)}}, 1),
        "deeper than the stack": ({"properties": {"x": _nested(1, 3000)}}, 1),
        "a huge enum": ({"properties": {"x": {"enum": list(range(500_000))}}}, -1),
        "many types": ({"properties": {"x": {"type": ["string"] * 500_000}}}, 1),
        "much required": ({"required": [f"a{n}" for n in range(500_000)]}, 1),
        "many keywords": ({"properties": {"x": {f"k{n}": {} for n in range(500_000)}}}, 1),
        "unique items": ({"properties": {"x": {"uniqueItems": True}}}, [[n] for n in range(20_000)]),
        "an item's schema for each": (
            {"properties": {"x": {"items": {"anyOf": [{"type": "null"}] * 100}}}},
            [1] * 20_000,
        ),
        "floats": ({"properties": {"x": {"multipleOf": 1e-300}}}, 1e300),
        "no number": ({"properties": {"x": {"multipleOf": 0, "minimum": math.inf}}}, 1),
        "big integers": ({"properties": {"x": {"multipleOf": 3, "minimum": 10**4000}}}, 10**4001),
        "another base": ({"$id": "http://[", "properties": {"x": {"$id": 5, "$ref": "#/x"}}}, 1),
        "other drafts": (
            {
                "$schema": "http://json-schema.org/draft-03/schema#",
                "properties": {"x": {"required": True, "extends": {}}},
            },
            1,
        ),
        "its own dialect": ({"properties": {"x": {"$schema": "http://x/y", "type": "string", "pattern": "(a+)+$"}}}, 1),
        "nonsense": (
            {"properties": {"x": {word: value for word in ("type", "anyOf", "items", "required") for value in (5,)}}},
            1,
        ),
        "lists for objects": ({"properties": [], "additionalProperties": [], "required": {}, "enum": {}}, 1),
        "a pointer without an end": ({"properties": {"x": {"$ref": "#/" + "a/" * 500_000}}}, 1),
    }
    return [(name, schema, value) for name, (schema, value) in schemas.items()]


class Counted(SchemaValidator):
    asked = 0

    def spend(self, steps: int = 1) -> bool:
        self.asked += 1
        return super().spend(steps)


@for_every("name, schema, value", hostile)
def test_a_hostile_schema_costs_a_bounded_number_of_steps(name: str, schema: dict[str, Any], value: Any) -> None:
    validator = Counted(schema, LARGEST_INTEGER)
    validator.find_faults({"x": value})
    assert validator.asked <= MOST_STEPS + 20 * DEEPEST
    fitted = fit(schema, {"x": value})
    assert isinstance(fitted, str) or fitted == {"x": value}
    assert not isinstance(fitted, str) or len(fitted) < 1500


def test_a_list_of_too_many_values_that_was_written_as_text_is_not_read() -> None:
    schema = {"properties": {"x": {"type": "array"}}}
    assert fit(schema, {"x": "[" + "[]," * 100 + "1]"}) == {"x": [*[[]] * 100, 1]}
    assert isinstance(fit(schema, {"x": "[" + "[]," * 30_000 + "1]"}), str)


def test_the_steps_of_pointers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = 0
    find = keywords.find_target

    def count(root: Any, reference: str) -> object:
        nonlocal followed
        followed += reference.count("/")
        return find(root, reference)

    monkeypatch.setattr(keywords, "find_target", count)
    inner: dict[str, Any] = {}
    for _ in range(500):
        inner = {"": inner}
    fit({**inner, "properties": {"x": {"oneOf": [{"$ref": "#" + "/" * 499}] * 2_400}}}, {"x": 1})
    assert 0 < followed < 20 * MOST_STEPS


@settings(max_examples=2 * settings().max_examples)
@given(OBJECTS, OBJECTS)
def test_no_schema_and_no_argument_raises(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    fitted = fit(schema, arguments)
    if not isinstance(fitted, str):
        assert set(fitted) <= set(arguments)
        assert all(arguments[name] is None for name in set(arguments) - set(fitted))


# Schemas of the words that are validated, without integral floats: JSON Schema takes 30.0 for an integer, we mend it.
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, -1.5]) | st.sampled_from(["", "a", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
_SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, "", "a", "abc"])
_TYPE = st.sampled_from(["integer", "number", "boolean", "string", "array", "object", "null"])
_COUNT = st.integers(0, 3)
_LEAF = st.fixed_dictionaries(
    {},
    optional={
        "type": _TYPE | st.lists(_TYPE, min_size=1, max_size=3, unique=True),
        "enum": st.lists(_SCALARS, min_size=1, max_size=4),
        "const": _SCALARS,
        "minimum": st.integers(-9, 9),
        "exclusiveMaximum": st.integers(-9, 9),
        "multipleOf": st.integers(1, 4),
        "minLength": _COUNT,
        "maxItems": _COUNT,
        "minProperties": _COUNT,
        "required": st.lists(st.sampled_from("xyz"), max_size=2, unique=True),
        "description": st.just("d"),
        "pattern": st.just("^a"),
    },
)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    words = {
        "properties": st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
        "additionalProperties": inner,
        "items": inner,
        "prefixItems": several,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
    }
    return st.builds(dict.__or__, _LEAF, st.fixed_dictionaries({}, optional=words))


_SCHEMAS = st.recursive(_LEAF | st.booleans(), _combined, max_leaves=6)
_ROOTS = st.builds(lambda rule, a, b: {"properties": {"x": rule}, "$defs": {"a": a, "b": b}}, _SCHEMAS, _LEAF, _LEAF)


@settings(max_examples=5 * settings().max_examples)
@given(_ROOTS, _VALUES)
def test_where_there_is_a_verdict_it_is_that_of_the_reference_implementation(
    schema: dict[str, Any], value: Any
) -> None:
    verdict = SchemaValidator(schema, LARGEST_INTEGER).apply(schema, {"x": value}, (), 0)
    expected = jsonschema.Draft202012Validator(schema).is_valid({"x": value})
    if verdict is not None:
        assert (not verdict) == expected, (json.dumps(schema), json.dumps(value))


@given(_ROOTS, JSON_TEXT)
def test_what_the_reference_implementation_takes_is_never_refused(schema: dict[str, Any], value: Any) -> None:
    if jsonschema.Draft202012Validator(schema).is_valid({"x": value}):
        assert not isinstance(fit(schema, {"x": value}, 10**30), str)
