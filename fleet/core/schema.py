"""The schemas of tools: cleaned of what devices may write into them, and applied to what models write.

Firmware knows three types with a default, a minimum and a maximum. More of JSON Schema is kept where it is plain, or
becomes so when references and needless alternatives are resolved; what combines or is nested deeply is left out, and
the device checks it itself. `fleet.core.shown_schema` writes what is kept so that every endpoint takes it.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeGuard

from pydantic import JsonValue
from pydantic_core import from_json

MOST_PROPERTIES = 64
MOST_CHOICES = 64
MOST_RULES = 400
"""Properties of one schema, at all its levels together."""
LONGEST_NAME = 64
LONGEST_TEXT = 500
"""Characters of a description or a default."""
LARGEST_INTEGER = 2**31 - 1
"""Firmware reads integers as int32."""
LARGEST_NUMBER = 1e308
"""Beyond it Python writes an integer that no other parser reads as a number."""

_DEEPEST = 4
_FARTHEST = 5
_COMBINING = frozenset({"$ref", "anyOf", "oneOf", "allOf"})
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
    """Return the schema of a tool's arguments with what is plain of it; never raises."""
    return _Cleaner(schema).whole()


class _Cleaner:
    """Cleans one schema, whose references lead to parts of itself; a chain of them may be endless or grow by powers."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._room = MOST_RULES

    def whole(self) -> dict[str, Any]:
        return self._object(self._resolve(self._root), _DEEPEST)

    def _object(self, schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
        properties = schema.get("properties")
        described = properties if isinstance(properties, dict) else {}
        names = list(islice(filter(_is_name, described), min(MOST_PROPERTIES, self._room)))
        self._room -= len(names)
        kept = {name: self._rule(described[name], levels) for name in names}
        required = schema.get("required")
        wanted = list(islice(dict.fromkeys(filter(_is_name, required)), MOST_PROPERTIES)) if _is_list(required) else []
        for name in wanted:
            kept.setdefault(name, {})
        return {"type": "object", "properties": kept, **({"required": wanted} if wanted else {})}

    def _rule(self, given: object, levels: int) -> dict[str, Any]:
        rule = self._resolve(given) if isinstance(given, dict) else {}
        kept: dict[str, Any] = {}
        if kind := _kind(rule):
            kept["type"] = kind
        if isinstance(description := rule.get("description"), str):
            kept["description"] = _plain(description)[:LONGEST_TEXT]
        if _is_scalar(default := rule.get("default")):
            kept["default"] = _plain(default)[:LONGEST_TEXT] if isinstance(default, str) else default
        if choices := _choices(rule):
            kept["enum"] = choices
        kept.update({edge: rule[edge] for edge in ("minimum", "maximum") if _is_number(rule.get(edge))})
        if levels > 1:
            kept.update(self._inside(kind, rule, levels - 1))
        return kept

    def _inside(self, kind: str, rule: Mapping[str, Any], levels: int) -> dict[str, Any]:
        if kind == "array":
            items = rule.get("items")
            return {"items": self._rule(items[0] if _is_list(items) and items else items, levels)}
        return self._object(rule, levels) if kind == "object" else {}

    def _resolve(self, rule: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow a rule's reference, or its only alternative beside `null`, for a few steps."""
        for _ in range(_FARTHEST):
            found = self._target(rule.get("$ref")) or _only_alternative(rule)
            if found is None:
                break
            rest = {key: value for key, value in rule.items() if key not in _COMBINING}
            rule = {**found, **rest}
        return rule

    def _target(self, reference: object) -> Mapping[str, Any] | None:
        if not isinstance(reference, str) or not reference.startswith("#/") or len(reference) > LONGEST_TEXT:
            return None
        place: object = self._root
        for step in reference[2:].split("/"):
            place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
        return place if isinstance(place, dict) else None


def _only_alternative(rule: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for word in ("anyOf", "oneOf", "allOf"):
        given = rule.get(word)
        if not _is_list(given):
            continue
        others = [one for one in given[:MOST_CHOICES] if isinstance(one, dict) and one.get("type") != "null"]
        if len(others) == 1:
            return others[0]
        choices = [choice for one in others for choice in _choices(one)]
        if choices and all(map(_choices, others)):
            return {"enum": choices}
    return None


def _choices(rule: Mapping[str, Any]) -> list[Any]:
    """Return the values that a rule allows, each once; none where there is another one that cannot be told."""
    given = [rule["const"]] if "const" in rule else rule.get("enum")
    if not _is_list(given):
        return []
    told = [choice for choice in given[: MOST_CHOICES + 2] if choice is not None]
    if len(told) > MOST_CHOICES or not all(map(_is_choice, told)):
        return []
    # 1, 1.0 and true are the same key of a dict.
    return list({(type(choice), choice): choice for choice in told}.values())


def _kind(rule: Mapping[str, Any]) -> str:
    given = rule.get("type")
    texts = [text for text in (given if _is_list(given) else [given]) if isinstance(text, str)]
    names = [name.strip().lower() for text in texts for name in text.split("|")]
    for name in names:
        if name in _TYPES:
            return name
    return "" if names else _implied(rule)


def _implied(rule: Mapping[str, Any]) -> str:
    """Return the type of a rule that names none, where its other members leave no doubt."""
    if isinstance(rule.get("properties"), dict):
        return "object"
    if isinstance(rule.get("items"), dict):
        return "array"
    choices = _choices(rule)
    kinds = {type(choice) for choice in choices}
    return next((name for name in ("string", "boolean", "integer") if kinds == set(_TYPES[name])), "")


def fit(
    schema: Mapping[str, Any], arguments: Mapping[str, JsonValue], furthest: int = LARGEST_INTEGER
) -> dict[str, JsonValue] | str:
    """Return the arguments as the device may be sent them, or what is wrong with them, in words for the model.

    Args:
        schema: As `clean` returned it. What it does not know is left out.
        arguments: As the model wrote them; harmless slips are mended.
        furthest: The largest integer that the tool's owner can read, with either sign.
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
        mended = _mend(value, rule)
        if not _is_right(mended, rule, furthest):
            return f"argument {name!r} must be {_wanted(rule)}, but is {_brief(value)}"
        fitted[name] = mended
    return fitted


def _mend(value: JsonValue, rule: Mapping[str, Any]) -> JsonValue:
    """Mend what models often write: `"30"` or `30.0` for an integer, `"true"` for a boolean, `5` for a text."""
    kind, text = rule.get("type"), value.strip() if isinstance(value, str) else ""
    if kind in ("array", "object"):
        return _mend_inside(_unpack(value, text, kind), rule)
    if kind in ("integer", "number") and _NUMBER.fullmatch(text):
        value = float(text) if "." in text else int(text)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return str(value) if kind == "string" and _is_number(value) else value


def _unpack(value: JsonValue, text: str, kind: object) -> JsonValue:
    """Return the object or list that was written as text; for some objects models are asked for that."""
    if not text.startswith("{" if kind == "object" else "["):
        return value
    try:
        found: JsonValue = from_json(text, allow_inf_nan=False)
    except ValueError:
        return value
    return found


def _mend_inside(value: JsonValue, rule: Mapping[str, Any]) -> JsonValue:
    if isinstance(value, dict):
        rules = rule.get("properties", {})
        return {name: _mend(inner, rules.get(name, {})) for name, inner in value.items()}
    return [_mend(inner, rule.get("items", {})) for inner in value] if isinstance(value, list) else value


def _is_right(value: JsonValue, rule: Mapping[str, Any], furthest: int) -> bool:
    wanted = _TYPES.get(rule.get("type", ""))
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    low, high = _bounds(rule, furthest)
    return _is_number(value) and low <= value <= high


def _bounds(rule: Mapping[str, Any], furthest: int) -> tuple[float, float]:
    widest = furthest if rule.get("type") == "integer" else math.inf
    return max(rule.get("minimum", -math.inf), -widest), min(rule.get("maximum", math.inf), widest)


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
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and _plain(value) == value


def _plain(text: str) -> str:
    """Return the text without halves of characters, which no request can carry."""
    return text.encode("utf-8", "replace").decode()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _is_choice(value: object) -> bool:
    return _is_scalar(value) and len(str(value)) <= LONGEST_NAME and _plain(str(value)) == str(value)
