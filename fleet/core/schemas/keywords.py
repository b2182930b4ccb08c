"""The keywords of JSON Schema that are validated; any other one, except annotations, makes a verdict unknown.

Never evaluated: `pattern` and `patternProperties` ("(a+)+$" would block the process), `format`, `$dynamicRef`,
references to other documents, and what few tools use (`if`, `contains`, `unevaluatedProperties`, …).
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from fleet.core.schemas.json_types import is_integer, is_list, is_number, is_of, is_same, type_name, types_of
from fleet.core.schemas.verdict import MOST_FAULTS, Check, Fault, SchemaPlace, Validation, Verdict, both, no_alternative

LONGEST_NAME = 64
"""Characters; a property with a longer name is hidden from models, so it cannot be required."""
MOST_REQUIRED = 64

_LONGEST_POINTER = 500
_POINTER_STEP = 10
"""Characters of a pointer that cost a step: `#/$defs/name` costs one."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable"}
    | {"$comment", "$schema", "$id", "$anchor", "$defs", "definitions", "contentMediaType", "contentEncoding"}
)
"""Keywords that allow every value."""


def _type(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    types = types_of(rule)
    if not types:
        return None
    if not any(is_of(name, value) for name in types):
        return place.fault(*(name for name in types if name != "null"))
    too_far = "integer" in types and "number" not in types and is_integer(value) and abs(value) > run.furthest
    return place.fault() if too_far else []


def _enum(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_list(rule) or not rule or not run.spend(len(rule)):
        return None
    if any(is_same(choice, value) for choice in rule):
        return []
    if isinstance(value, dict | list) and any(isinstance(choice, type(value)) for choice in rule):
        return None
    return place.fault(*(name for name in dict.fromkeys(map(type_name, rule)) if name != "null"))


def _const(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    return _enum(run, [rule], value, place)


def _limit(fits: Callable[[Any, Any], bool]) -> Check:
    """Return the check of a number's limit; draft 4's exclusive limits are booleans and are not validated."""

    def check(_: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
        if not is_number(value):
            return []
        if not is_number(rule):
            return None
        return [] if fits(value, rule) else place.fault()

    return check


def _multiple(_: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_number(value):
        return []
    if not is_integer(rule) or rule <= 0 or not is_integer(value):
        return None  # the remainder of a float is not exact
    return place.fault() if value % rule else []


def _size(of: type[str] | type[list[Any]] | type[dict[str, Any]], fits: Callable[[Any, Any], bool]) -> Check:
    """Return the check of a text's, list's or object's length."""

    def check(_: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
        if not isinstance(value, of):
            return []
        if not is_number(rule):
            return None
        return [] if fits(len(value), rule) else place.fault()

    return check


def _unique(_: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    return [] if rule is False or not is_list(value) or len(value) <= 1 else None


def _properties(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not isinstance(value, dict):
        return []
    if not isinstance(rule, dict) or not run.spend(len(value)):
        return None
    return _members(run, {name: rule[name] for name in value if name in rule}, value, place)


def _additional(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not isinstance(value, dict):
        return []
    known = place.schema.get("properties", {})
    if not isinstance(known, dict) or not run.spend(len(value)):
        return None
    others = [name for name in value if name not in known]
    if others and "patternProperties" in place.schema:
        return None
    if rule is False:
        return [Fault((*place.path, name), place.schema, "unknown") for name in islice(others, MOST_FAULTS)]
    return _members(run, dict.fromkeys(others, rule), value, place)


def _members(run: Validation, rules: Mapping[str, Any], value: Mapping[str, Any], place: SchemaPlace) -> Verdict:
    depth = place.depth + 1
    return both(run.apply(rule, value[name], (*place.path, name), depth) for name, rule in rules.items())


def _patterns(_: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    return None if isinstance(value, dict) and value else []


def _required(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not isinstance(value, dict):
        return []
    if not is_list(rule) or not run.spend(len(rule)):
        return None
    names = [name for name in rule[:MOST_REQUIRED] if isinstance(name, str) and len(name) <= LONGEST_NAME]
    known = place.schema.get("properties")
    rules = known if isinstance(known, dict) else {}
    faults = [
        Fault((*place.path, name), found if isinstance(found := rules.get(name), dict) else {}, "missing")
        for name in dict.fromkeys(names)
        if name not in value
    ]
    return faults or ([] if len(names) == len(rule) else None)


def _items(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_list(value):
        return []
    if is_list(rule):  # before draft 2020-12
        return _prefix(run, rule, value, place)
    first = place.schema.get("prefixItems", [])
    if not is_list(first):
        return None
    return both(_each(run, ((at, rule) for at in range(len(first), len(value))), value, place))


def _prefix(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_list(value):
        return []
    return both(_each(run, enumerate(rule[: len(value)]), value, place)) if is_list(rule) else None


def _each(
    run: Validation, rules: Iterable[tuple[int, Any]], value: Sequence[Any], place: SchemaPlace
) -> Iterable[Verdict]:
    for at, rule in rules:
        if not run.spend():
            yield None
            return
        yield run.apply(rule, value[at], (*place.path, at), place.depth + 1)


def _all(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    return both(_branches(run, rule, value, place)) if is_list(rule) and rule else None


def _any(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_list(rule) or not rule:
        return None
    found = []
    for verdict in _branches(run, rule, value, place):
        if verdict == []:
            return []
        found.append(verdict)
    return no_alternative(found, place)


def _one(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not is_list(rule) or not rule:
        return None
    verdicts = list(_branches(run, rule, value, place))
    fitting = sum(verdict == [] for verdict in verdicts)
    if fitting > 1:
        return place.fault()
    if fitting:
        return None if None in verdicts else []
    return no_alternative(verdicts, place)


def _not(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    verdict = run.apply(rule, value, place.path, place.depth + 1)
    if verdict is None:
        return None
    return [] if verdict else place.fault()


def _branches(run: Validation, rules: Sequence[Any], value: Any, place: SchemaPlace) -> Iterable[Verdict]:
    for rule in rules:
        if not run.spend():
            yield None
            return
        yield run.apply(rule, value, place.path, place.depth + 1)


def _reference(run: Validation, rule: Any, value: Any, place: SchemaPlace) -> Verdict:
    if not isinstance(rule, str) or len(rule) > _LONGEST_POINTER:
        return None
    # One pointer may have hundreds of steps and may be followed many times.
    cost = len(rule) // _POINTER_STEP
    if cost and not run.spend(cost):
        return None
    return run.apply(find_target(run.root, rule), value, place.path, place.depth + 1)


def find_target(root: Mapping[str, Any], reference: str) -> object:
    """Return the target of a reference within its document; None for any other reference."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    place: object = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict):
            place = place.get(name)
        elif is_list(place) and name.isascii() and name.isdecimal() and len(name) < 6 and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place


CHECKS: Mapping[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _limit(operator.ge),
    "maximum": _limit(operator.le),
    "exclusiveMinimum": _limit(operator.gt),
    "exclusiveMaximum": _limit(operator.lt),
    "multipleOf": _multiple,
    "minLength": _size(str, operator.ge),
    "maxLength": _size(str, operator.le),
    "minItems": _size(list, operator.ge),
    "maxItems": _size(list, operator.le),
    "minProperties": _size(dict, operator.ge),
    "maxProperties": _size(dict, operator.le),
    "uniqueItems": _unique,
    "properties": _properties,
    "additionalProperties": _additional,
    "patternProperties": _patterns,
    "required": _required,
    "items": _items,
    "prefixItems": _prefix,
    "allOf": _all,
    "anyOf": _any,
    "oneOf": _one,
    "not": _not,
    "$ref": _reference,
}
