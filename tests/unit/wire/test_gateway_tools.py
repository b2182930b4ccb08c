from typing import Any

import pytest
from hypothesis import given

from fleet.wire.gateway_tools import BadTool, find_fault, read_tool
from fleet.wire.mcp import ToolSpec
from tests.support.json_values import JSON

EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "required": []}


def read(**changes: Any) -> ToolSpec | BadTool:
    return read_tool({"name": "get_battery", "description": "电量", "parameters": EMPTY, **changes})


@pytest.mark.parametrize(
    "name", ["get_battery", "device.light.turn_on", "weather.get_current", "_x", "a", "a" * 64, "a.1", "A9_._b"]
)
def test_names_of_the_document_are_good(name: str) -> None:
    assert isinstance(read(name=name), ToolSpec)


@pytest.mark.parametrize(
    "name", ["1tool", "tool.", "tool..name", ".tool", "", "a" * 65, "a-b", "a b", "电量", "a\n", None, 5, ["a"]]
)
def test_other_names_are_refused(name: Any) -> None:
    bad = read(name=name)
    assert isinstance(bad, BadTool)
    assert bad.code == "TOOL_REGISTRATION_FAILED"


def test_description_is_needed_and_cut() -> None:
    assert isinstance(read(description=None), BadTool)
    good = read(description="x" * 5_000)
    assert isinstance(good, ToolSpec)
    assert len(good.description) == 2_000


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        EMPTY,
        {"type": "object", "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}}},
        {"type": "object", "properties": {"a": {"enum": ["x", 1, None], "default": "x", "title": "A"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": True}},
        {"type": "object", "properties": {"a": {"type": "string|number|boolean|array|object"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"type": "object", "additionalProperties": False, "x-own": 5},
        {"type": "object", "properties": {"a": {"items": [{"type": "string"}], "minItems": 1}}},
    ],
)
def test_json_schemas_are_taken_as_they_are(parameters: dict[str, Any]) -> None:
    good = read(parameters=parameters)
    assert isinstance(good, ToolSpec)
    assert good.input_schema == parameters


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (None, "object"),
        ([], "object"),
        ("{}", "object"),
        ({"type": "string"}, "type object"),
        ({"type": "object", "properties": []}, "properties"),
        ({"type": "object", "properties": {"a": "string"}}, "properties.a"),
        ({"type": "object", "properties": {"a": {"type": "int"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"type": "string|int"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"type": []}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"type": None}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"enum": []}}}, "enum"),
        ({"type": "object", "properties": {"a": {"enum": "x"}}}, "enum"),
        ({"type": "object", "properties": {"a": {"minimum": "0"}}}, "minimum"),
        ({"type": "object", "properties": {"a": {"minLength": -1}}}, "minLength"),
        ({"type": "object", "properties": {"a": {"description": 5}}}, "description"),
        ({"type": "object", "required": "a"}, "required"),
        ({"type": "object", "required": [1]}, "required"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": 5}}}, "items"),
        ({"type": "object", "properties": {"a": {"anyOf": {}}}}, "anyOf"),
    ],
)
def test_what_is_no_json_schema_is_refused_with_its_place(parameters: Any, reason: str) -> None:
    bad = read(parameters=parameters)
    assert isinstance(bad, BadTool)
    assert bad.code == "INVALID_TOOL_PARAMETERS"
    assert reason in bad.reason


def test_endless_nesting_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(50):
        schema = {"type": "object", "properties": {"a": schema}}
    assert isinstance(read(parameters=schema), BadTool)


@given(JSON)
def test_no_entry_raises(entry: Any) -> None:
    read_tool(entry)
    find_fault(entry)
    read(parameters=entry)
    read(parameters={"type": "object", "properties": {"a": entry}})


class CountedSchema(dict[str, Any]):
    """A schema that counts how often something is looked for in any of its kind."""

    looks = 0

    def __contains__(self, word: object) -> bool:
        CountedSchema.looks += 1
        return super().__contains__(word)

    def __getitem__(self, word: str) -> Any:
        CountedSchema.looks += 1
        return super().__getitem__(word)

    def get(self, word: str, default: Any = None) -> Any:
        CountedSchema.looks += 1
        return super().get(word, default)


def looks(schema: CountedSchema) -> int:
    """Return how often a validation looks for a keyword."""
    CountedSchema.looks = 0
    assert find_fault(schema) == ""
    return CountedSchema.looks


def test_a_keyword_that_is_absent_costs_nothing() -> None:
    chain = CountedSchema()
    assert looks(chain) == 0
    for _ in range(10):
        chain = CountedSchema({"if": chain})
    assert looks(chain) <= 10 * 4, "four looks a schema, not one for each of thirty keywords"
    wide = CountedSchema(properties={f"p{number}": CountedSchema(title="x") for number in range(1_000)})
    assert looks(wide) <= 1_001 * 4
