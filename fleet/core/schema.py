"""The schemas of tools: cleaned of what devices may write into them, and applied to what models write.

Firmware knows three types with a default, a minimum and a maximum. More of JSON Schema is kept where it is plain; what
refers, combines or is nested deeply is left out, and the device checks it itself.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeGuard

from pydantic import JsonValue

MOST_PROPERTIES = 64
MOST_CHOICES = 64
LONGEST_NAME = 64
LONGEST_TEXT = 500
"""Characters of a description or a default."""
LARGEST_INTEGER = 2**31 - 1
"""Firmware reads integers as int32."""

_DEEPEST = 4
_SHOWN = 60
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}


def clean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments as a model may see it; never raises."""
    return _object(schema, _DEEPEST)


def _object(schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
    properties = schema.get("properties")
    described = properties if isinstance(properties, dict) else {}
    kept = {name: _rule(rule, levels) for name, rule in islice(described.items(), MOST_PROPERTIES) if _is_name(name)}
    required = schema.get("required")
    names = list(islice(dict.fromkeys(filter(_is_name, required)), MOST_PROPERTIES)) if _is_list(required) else []
    for name in names:
        kept.setdefault(name, {})
    return {"type": "object", "properties": kept, **({"required": names} if names else {})}


def _rule(rule: object, levels: int) -> dict[str, Any]:
    if not isinstance(rule, dict):
        return {}
    kept: dict[str, Any] = {}
    if kind := _kind(rule.get("type")):
        kept["type"] = kind
    if isinstance(description := rule.get("description"), str):
        kept["description"] = description[:LONGEST_TEXT]
    if _is_scalar(default := rule.get("default")):
        kept["default"] = default[:LONGEST_TEXT] if isinstance(default, str) else default
    choices = rule.get("enum")
    if _is_list(choices) and 0 < len(choices) <= MOST_CHOICES and all(map(_is_choice, choices)):
        kept["enum"] = choices
    kept.update({edge: rule[edge] for edge in ("minimum", "maximum") if _is_number(rule.get(edge))})
    if levels > 1:
        kept.update(_inside(kind, rule, levels - 1))
    return kept


def _inside(kind: str, rule: Mapping[str, Any], levels: int) -> dict[str, Any]:
    if kind == "array":
        return {"items": _rule(rule.get("items"), levels)}
    return _object(rule, levels) if kind == "object" else {}


def _kind(given: object) -> str:
    names = given if _is_list(given) else [given]
    return next((name for name in names if isinstance(name, str) and name in _TYPES), "")


def fit(schema: Mapping[str, Any], arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue] | str:
    """Return the arguments as the device may be sent them, or what is wrong with them, in words for the model.

    Args:
        schema: As `clean` returned it. What it does not know is left out.
        arguments: As the model wrote them; harmless slips are mended.
    """
    required: Sequence[str] = schema.get("required", ())
    rules: Mapping[str, dict[str, Any]] = schema["properties"]
    fitted: dict[str, JsonValue] = {}
    for name, rule in rules.items():
        value = arguments.get(name)
        if value is None:
            if name in required:
                return f"argument {name!r} is missing; it must be {_wanted(rule)}"
            continue
        mended = _mend(value, rule.get("type"))
        if not _is_right(mended, rule):
            return f"argument {name!r} must be {_wanted(rule)}, but is {_brief(value)}"
        fitted[name] = mended
    return fitted


def _mend(value: JsonValue, kind: object) -> JsonValue:
    """Mend what models often write: `"30"` or `30.0` for an integer, `"true"` for a boolean, `5` for a text."""
    text = value.strip() if isinstance(value, str) else ""
    if kind in ("integer", "number") and _NUMBER.fullmatch(text):
        value = float(text) if "." in text else int(text)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return str(value) if kind == "string" and _is_number(value) else value


def _is_right(value: JsonValue, rule: Mapping[str, Any]) -> bool:
    wanted = _TYPES.get(rule.get("type", ""))
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    low, high = _bounds(rule)
    return _is_number(value) and low <= value <= high


def _bounds(rule: Mapping[str, Any]) -> tuple[float, float]:
    furthest = LARGEST_INTEGER if rule.get("type") == "integer" else math.inf
    return max(rule.get("minimum", -math.inf), -furthest), min(rule.get("maximum", math.inf), furthest)


def _wanted(rule: Mapping[str, Any]) -> str:
    """Return in words what a rule allows."""
    if "enum" in rule:
        return f"one of {json.dumps(rule['enum'], ensure_ascii=False)}"
    words = _WORDS.get(rule.get("type", ""), "given")
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and high is not None:
        return f"{words} from {low} to {high}"
    if low is not None:
        return f"{words} of at least {low}"
    return words if high is None else f"{words} of at most {high}"


def _brief(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _is_choice(value: object) -> bool:
    return _is_scalar(value) and len(str(value)) <= LONGEST_NAME
