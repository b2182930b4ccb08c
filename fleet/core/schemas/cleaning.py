"""Cleaning of tools' schemas, which come from untrusted devices and servers, before models see them.

Firmware knows three types with a default, a minimum and a maximum. Other simple parts of JSON Schema are kept too, also
those that become simple when references and redundant alternatives are resolved. Combined and deeply nested rules are
left out. `fleet.core.schemas.shown` writes the result in a form that every endpoint accepts;
`fleet.core.schemas.arguments` validates arguments against the original schema.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeGuard

MOST_PROPERTIES = 64
MOST_CHOICES = 64
MOST_RULES = 400
"""Properties of one schema, at all its levels together."""
LONGEST_NAME = 64
LONGEST_TEXT = 500
"""Characters of a description or a default."""
LARGEST_NUMBER = 1e308
"""Above this Python writes an integer that no other parser reads as a number."""

_DEEPEST = 4
_FARTHEST = 5
_COMBINING = frozenset({"$ref", "anyOf", "oneOf", "allOf"})
_MOST_LOOKED_AT = 4_000
"""Names of properties that are read, at all levels together."""
_MOST_KEYWORDS = 100
"""Of one rule."""
_TYPES: dict[str, type] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}


def clean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the simple part of the schema of a tool's arguments; never raises."""
    return _Cleaner(schema).whole()


class _Cleaner:
    """Cleans one schema. Its references point into itself and may form endless or exponentially growing chains."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._room = MOST_RULES
        self._looks = _MOST_LOOKED_AT

    def whole(self) -> dict[str, Any]:
        return self._object(self._resolve(self._root), _DEEPEST)

    def _object(self, schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
        properties = schema.get("properties")
        described = properties if isinstance(properties, dict) else {}
        seen = list(islice(described, self._looks))
        self._looks -= len(seen)
        names = list(islice(filter(_is_name, seen), min(MOST_PROPERTIES, self._room)))
        self._room -= len(names)
        kept = {name: self._rule(described[name], levels) for name in names}
        required = schema.get("required")
        listed = filter(_is_name, required[:MOST_PROPERTIES]) if _is_list(required) else ()
        wanted = list(dict.fromkeys(listed))
        for name in wanted:
            kept.setdefault(name, {})
        return {"type": "object", "properties": kept, **({"required": wanted} if wanted else {})}

    def _rule(self, given: object, levels: int) -> dict[str, Any]:
        rule = self._resolve(given) if isinstance(given, dict) else {}
        kept: dict[str, Any] = {}
        if kind := _kind(rule):
            kept["type"] = kind
        if isinstance(description := rule.get("description"), str):
            kept["description"] = _plain(description[:LONGEST_TEXT])
        if _is_scalar(default := rule.get("default")):
            kept["default"] = _plain(default[:LONGEST_TEXT]) if isinstance(default, str) else default
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
            rest = {key: value for key, value in _first_keywords(rule).items() if key not in _COMBINING}
            rule = {**_first_keywords(found), **rest}
        return rule

    def _target(self, reference: object) -> Mapping[str, Any] | None:
        if not isinstance(reference, str) or not reference.startswith("#/") or len(reference) > LONGEST_TEXT:
            return None
        place: object = self._root
        for step in reference[2:].split("/"):
            place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
        return place if isinstance(place, dict) else None


def _first_keywords(rule: Mapping[str, Any]) -> dict[str, Any]:
    return dict(islice(rule.items(), _MOST_KEYWORDS))


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
    """Return the values that a rule allows, each once; empty if one of them cannot be shown."""
    given = [rule["const"]] if "const" in rule else rule.get("enum")
    if not _is_list(given):
        return []
    listed = [choice for choice in given[: MOST_CHOICES + 2] if choice is not None]
    if len(listed) > MOST_CHOICES or not all(map(_is_choice, listed)):
        return []
    # 1, 1.0 and true are the same key of a dict.
    return list({(type(choice), choice): choice for choice in listed}.values())


def _kind(rule: Mapping[str, Any]) -> str:
    given = rule.get("type")
    listed = given[:MOST_CHOICES] if _is_list(given) else [given]
    texts = [text for text in listed if isinstance(text, str) and len(text) <= LONGEST_TEXT]
    names = [name.strip().lower() for text in texts for name in text.split("|")]
    for name in names:
        if name in _TYPES:
            return name
    return "" if names else _implied(rule)


def _implied(rule: Mapping[str, Any]) -> str:
    """Return the type of a rule without `type`, if its other members imply exactly one."""
    if isinstance(rule.get("properties"), dict):
        return "object"
    if isinstance(rule.get("items"), dict):
        return "array"
    choices = _choices(rule)
    kinds = {type(choice) for choice in choices}
    return next((name for name in ("string", "boolean", "integer") if kinds == {_TYPES[name]}), "")


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and _plain(value) == value


def _plain(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST_NUMBER


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _is_choice(value: object) -> bool:
    return _is_scalar(value) and len(str(value)) <= LONGEST_NAME and _plain(str(value)) == str(value)
