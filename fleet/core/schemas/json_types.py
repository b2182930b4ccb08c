"""The types of JSON Schema and their Python types."""

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeGuard

TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}

_LONGEST = 100


def types_of(rule: object) -> tuple[str, ...]:
    """Return the types that a `type` names, in lower case; empty if one of them is unknown."""
    if isinstance(rule, str):
        return _types_of_text(rule) if len(rule) <= _LONGEST else ()
    if is_list(rule) and len(rule) <= len(TYPES):
        names = [name.lower() if isinstance(name, str) else "" for name in rule]
    else:
        return ()
    return _known(names)


@functools.lru_cache(maxsize=128)
def _types_of_text(rule: str) -> tuple[str, ...]:
    # The LLM Gateway document writes several types as one text, "string|number" (section 4.6).
    return _known([name.strip().lower() for name in rule.split("|")])


def _known(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names) if all(name in TYPES for name in names) else ()


def is_of(name: str, value: object) -> bool:
    """Whether a value is of a type; 30.0 is not an integer here, because few programs read it as one."""
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def type_name(value: object) -> str:
    return next(name for name in TYPES if is_of(name, value))


def is_same(one: object, other: object) -> bool:
    """Whether two values are equal in JSON Schema, where true is not 1; False for lists and objects."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict | list):
        return False
    return one == other


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))
