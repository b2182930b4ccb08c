"""A tool's cleaned schema in the form that models see, without parts that endpoints are known to refuse.

Gemini refuses a rule without a type, choices that are empty or not texts, and objects without properties. OpenAI
refuses lists without items. llama.cpp allows no member in an object whose list of properties is empty
(docs/adr/0014-shown-schemas.md).
"""

from collections.abc import Mapping
from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_OBJECT_AS_TEXT = "A JSON object, written as text."
_NUMBERS = frozenset({"integer", "number"})


def shown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for models.

    Args:
        schema: As `fleet.core.schemas.cleaning.clean` returned it; arguments are validated against that one.
    """
    required = {"required": list(schema["required"])} if schema.get("required") else {}
    properties = {name: _rule(rule) for name, rule in schema.get("properties", {}).items()}
    return {"type": "object", "properties": properties, **required}


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    kind = rule.get("type", "string")
    described = {"description": rule["description"]} if rule.get("description") else {}
    if kind == "object":
        return (
            {**shown(rule), **described}
            if rule.get("properties")
            else {**_TEXT, **_describe(described, _OBJECT_AS_TEXT)}
        )
    kept: dict[str, Any] = {"type": kind, **described}
    if kind == "array":
        return {**kept, "items": _rule(rule.get("items", _TEXT))}
    if choices := rule.get("enum"):
        kept.update(_choose(kind, choices, described))
    if kind in _NUMBERS:
        kept.update({edge: rule[edge] for edge in ("minimum", "maximum") if edge in rule})
    if _is_of(kind, default := rule.get("default")):
        kept["default"] = default
    return kept


def _choose(kind: str, choices: list[Any], described: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "string" and all(isinstance(choice, str) and choice for choice in choices):
        return {"enum": choices}
    return _describe(described, f"One of: {', '.join(str(choice) for choice in choices)}.")


def _describe(described: Mapping[str, Any], words: str) -> dict[str, Any]:
    return {"description": f"{described.get('description', '')} {words}".strip()}


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    return isinstance(value, int | float) if kind in _NUMBERS else isinstance(value, str) and kind == "string"
