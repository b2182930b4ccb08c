"""Repair and validation of a call's arguments against the tool's schema. No argument is dropped silently."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.core.schemas.explanations import explain
from fleet.core.schemas.json_types import is_number, is_of
from fleet.core.schemas.validator import SchemaValidator
from fleet.core.schemas.verdict import Fault, Path
from fleet.wire.json_text import has_too_many_values

LARGEST_INTEGER = 2**31 - 1
"""Firmware reads integers as int32."""
MOST_ROUNDS = 4
"""Validations after a repair: a text may hold an object that holds a text."""
MOST_EXPLAINED = 3

_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")


def fit(
    schema: Mapping[str, Any], arguments: Mapping[str, JsonValue], furthest: int = LARGEST_INTEGER
) -> dict[str, JsonValue] | str:
    """Return the arguments to send, or an explanation for the model of which ones are wrong and why.

    Valid values, and values that cannot be validated here, stay unchanged. A wrong value of a common harmless form is
    repaired. An optional argument that is null, where null is not allowed, is removed.

    Args:
        schema: As the tool's owner wrote it.
        arguments: As the model wrote them.
        furthest: The largest integer that the tool's owner can read, with either sign.
    """
    validator = SchemaValidator(schema, furthest)
    fitted = dict(arguments)
    wrong = validator.find_faults(fitted)
    if wrong:
        fitted = {name: _copy(value) for name, value in arguments.items()}
    for _ in range(MOST_ROUNDS):
        if not wrong:
            return fitted
        if left := _mend_all(fitted, wrong):
            wrong = left
            break
        wrong = validator.find_faults(fitted)
    return "; ".join(dict.fromkeys(explain(fault, arguments) for fault in wrong[:MOST_EXPLAINED])) or fitted


def _copy(value: JsonValue) -> JsonValue:
    """Return a copy of JSON; the library's takes ten times as long."""
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _mend_all(arguments: dict[str, JsonValue], faults: Sequence[Fault]) -> list[Fault]:
    """Repair the arguments in place; return the faults that cannot be repaired."""
    groups: dict[Path, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.path, []).append(fault)
    return [group[0] for path, group in groups.items() if not _mend_at(arguments, path, group)]


def _mend_at(arguments: dict[str, JsonValue], path: Path, faults: Sequence[Fault]) -> bool:
    """Repair the value at a path; return whether that was possible."""
    if not path or any(fault.kind != "wrong" for fault in faults):
        return False
    holder: Any = arguments
    try:
        for step in path[:-1]:
            holder = holder[step]
        value = holder[path[-1]]
    except (KeyError, IndexError, TypeError):
        return True  # the enclosing value has just been repaired
    if value is None and isinstance(holder, dict):
        del holder[path[-1]]
        return True
    types = dict.fromkeys(name for fault in faults for name in fault.types)
    mended = _mend(value, tuple(types))
    if mended is not None:
        holder[path[-1]] = mended
    return mended is not None


def _mend(value: JsonValue, types: Sequence[str]) -> JsonValue:
    """Return a value converted to one of the types; None where no conversion fits."""
    for name in types:
        mended = None if is_of(name, value) else _as_type(value, name)
        if mended is not None and is_of(name, mended):
            return mended
    return None


def _as_type(value: JsonValue, name: str) -> JsonValue:
    """Convert common forms: `"30"` or `30.0` to an integer, `"true"` to a boolean, `5` to a text."""
    text = value.strip() if isinstance(value, str) else ""
    match name:
        case "integer" | "number":
            number = (float(text) if "." in text else int(text)) if _NUMBER.fullmatch(text) else value
            whole = name == "integer" and isinstance(number, float) and number.is_integer()
            return int(number) if whole and isinstance(number, float) else number
        case "boolean":
            return text.lower() == "true" if text.lower() in ("true", "false") else None
        case "string":
            return str(value) if is_number(value) else None
    return _unpack(text, name)


def _unpack(text: str, name: str) -> JsonValue:
    """Return the object or list that a text holds; the shown schema asks for this form of some objects."""
    if not text.startswith("{" if name == "object" else "[") or has_too_many_values(text):
        return None
    try:
        found: JsonValue = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    return found
