"""Explanations of invalid arguments for the model that wrote them."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pydantic import JsonValue

from fleet.core.schemas.json_types import is_list, is_number, types_of
from fleet.core.schemas.verdict import Fault, Path

LONGEST = 400
"""Characters about one argument."""

_SHOWN = 60
_MOST_CHOICES = 64
_MOST_NAMES = 20
_LONGEST_NAME = 64
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_EDGES = {
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "multipleOf": "in steps of",
    "minLength": "with at least so many characters:",
    "maxLength": "with at most so many characters:",
    "minItems": "with at least so many items:",
    "maxItems": "with at most so many items:",
    "minProperties": "with at least so many members:",
    "maxProperties": "with at most so many members:",
}


def explain(fault: Fault, arguments: Mapping[str, JsonValue]) -> str:
    """Return which argument is wrong, and which values are valid.

    Args:
        fault: Of the repaired arguments.
        arguments: As the model wrote them.
    """
    if not fault.path:
        return f"the arguments do not fit: {_alternatives(fault, arguments) or wanted(fault.schema)}"[:LONGEST]
    name = _name(fault.path)
    if fault.kind == "missing":
        return f"argument {name} is missing; it must be {wanted(fault.schema)}"[:LONGEST]
    if fault.kind == "unknown":
        return f"argument {name} is not known; there are: {_names(fault.schema)}"[:LONGEST]
    if inner := _alternatives(fault, arguments):
        return inner[:LONGEST]
    return f"argument {name} must be {wanted(fault.schema)}, but is {_brief(_find(arguments, fault.path))}"


def wanted(schema: Mapping[str, Any]) -> str:
    """Return in words what a schema allows, for its simple keywords."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if is_list(choices):
        return f"one of {_write(choices[:_MOST_CHOICES])}"[:LONGEST]
    words = " or ".join(_WORDS[name] for name in types_of(schema.get("type")) if name != "null") or "given"
    low, high = schema.get("minimum"), schema.get("maximum")
    if is_number(low) and is_number(high):
        words = f"{words} from {_write(low)} to {_write(high)}"
    elif is_number(low):
        words = f"{words} of at least {_write(low)}"
    elif is_number(high):
        words = f"{words} of at most {_write(high)}"
    others = [f"{edge} {_write(schema[word])}" for word, edge in _EDGES.items() if is_number(schema.get(word))]
    return " ".join((words, *others))[:LONGEST]


def _alternatives(fault: Fault, arguments: Mapping[str, JsonValue]) -> str:
    if not any(one.path != fault.path for one in fault.inner):
        kinds = dict.fromkeys(wanted(one.schema) for one in fault.inner)
        text = f"argument {_name(fault.path)} must be {' or '.join(kinds)}, but is "
        return text + _brief(_find(arguments, fault.path)) if kinds and fault.path else ""
    return ", or ".join(dict.fromkeys(explain(one, arguments) for one in fault.inner))


def _name(path: Path) -> str:
    text = ".".join(str(step)[:_LONGEST_NAME] for step in path)
    return repr(text[: 2 * _LONGEST_NAME])


def _names(schema: Mapping[str, Any]) -> str:
    known = schema.get("properties")
    names = [name[:_LONGEST_NAME] for name in islice(known, _MOST_NAMES)] if isinstance(known, dict) else []
    return ", ".join(names) or "none"


def _find(value: JsonValue | Mapping[str, JsonValue], path: Path) -> JsonValue:
    """Return the value at a path; for a value that was read from a text, the text."""
    found: Any = value
    for step in path:
        if isinstance(found, Mapping):
            found = found.get(str(step))
        elif is_list(found) and isinstance(step, int) and step < len(found):
            found = found[step]
    return found if not isinstance(found, Mapping) else dict(found)


def _brief(value: JsonValue) -> str:
    text = _write(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _write(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return "something else"
