from typing import Any

import pytest
from hypothesis import given

from fleet.core.schemas.cleaning import clean
from fleet.core.schemas.shown import shown
from tests.unit.core.schemas.test_cleaning import OBJECTS

TEXT = {"type": "string", "description": "A JSON object, written as text."}


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        ({}, {"type": "string"}),
        ({"type": "integer", "minimum": 0, "maximum": 9}, {"type": "integer", "minimum": 0, "maximum": 9}),
        ({"type": "string", "minimum": 0}, {"type": "string"}),
        ({"type": "object"}, TEXT),
        ({"type": "object", "description": "What."}, {**TEXT, "description": f"What. {TEXT['description']}"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": {"type": "object"}}, {"type": "array", "items": TEXT}),
        ({"enum": ["a", ""]}, {"type": "string", "description": "One of: a, ."}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"type": "boolean", "default": True}, {"type": "boolean", "default": True}),
        ({"type": "boolean", "default": 1}, {"type": "boolean"}),
        ({"type": "integer", "default": True}, {"type": "integer"}),
        ({"type": "string", "default": "x"}, {"type": "string", "default": "x"}),
    ],
)
def test_every_rule_is_written_so_that_every_endpoint_takes_it(rule: dict[str, Any], seen: dict[str, Any]) -> None:
    assert shown(clean({"properties": {"x": rule}}))["properties"]["x"] == seen


def test_objects_with_properties_are_shown_with_them() -> None:
    rule = {"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"], "description": "d"}
    assert shown(clean({"properties": {"x": rule}, "required": ["x"]})) == {
        "type": "object",
        "properties": {"x": rule},
        "required": ["x"],
    }


def test_what_is_nested_too_deeply_is_written_as_text() -> None:
    rule: dict[str, Any] = {"type": "integer"}
    for _ in range(9):
        rule = {"type": "object", "properties": {"x": rule}}
    seen = shown(clean(rule))
    for _ in range(3):
        seen = seen["properties"]["x"]
    assert seen["properties"]["x"] == TEXT


@given(OBJECTS)
def test_no_schema_is_shown_with_anything_that_an_endpoint_refuses(schema: dict[str, Any]) -> None:
    def check(rule: dict[str, Any], *, root: bool = False) -> None:
        assert rule["type"] in ("string", "integer", "number", "boolean", "array", "object")
        assert ("items" in rule) == (rule["type"] == "array")
        assert bool(rule.get("properties")) == (rule["type"] == "object") or root
        assert all(isinstance(choice, str) and choice for choice in rule.get("enum", ["x"]))
        for inner in (*rule.get("properties", {}).values(), *([rule["items"]] if "items" in rule else [])):
            check(inner)

    check(shown(clean(schema)), root=True)
