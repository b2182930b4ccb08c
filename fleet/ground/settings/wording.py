"""Settings in words: what a value may be, what one is shown as, and what is wrong with one."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fleet.ground.settings.fields import PREFIX

MASK = "********"
_LONGEST = 80
_NUMBERS: dict[Any, str] = {int: "whole number", float: "number"}
_OTHERS: dict[Any, str] = {bool: "`true` or `false`", Path: "path", str: "text", SecretStr: "text"}


def variables(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Return the environment variables of a setting, the usual one first."""
    alias = field.validation_alias
    if not isinstance(alias, AliasChoices):
        return (f"{PREFIX}{name.upper()}",)
    return tuple(str(choice) for choice in alias.choices if choice != name)


def told(field: FieldInfo) -> dict[str, Any]:
    """Return what was said of a setting beside its type, default and edges (`fields.Told`)."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def plain_type(field: FieldInfo) -> Any:
    """Return a setting's type without None."""
    found = field.annotation
    if get_origin(found) in (Union, UnionType):
        found = next(part for part in get_args(found) if part is not type(None))
    return found


def allowed(field: FieldInfo) -> str:
    """Return in words what a setting may be."""
    kind, about = plain_type(field), told(field)
    if get_origin(kind) is Literal:
        return _listed([f"`{choice}`" for choice in get_args(kind)])
    unit = about.get("unit")
    word = _NUMBERS.get(kind) or _OTHERS[kind]
    if unit:
        word = f"whole number of {unit}" if kind is int else str(unit)
    return ", ".join(filter(None, (about.get("form") or word, _range(field))))


def shown(value: object) -> str:
    """Return a value for people, on one line: what is secret in it is masked."""
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = re.sub(r"(://)[^/?#]*@", rf"\1{MASK}@", text) if "://" in text else text
    # Keys of services are often in the query; a place in it is not.
    text = re.sub(r"([?&][^=&\s]+=)(?!\{ip\})[^&\s]+", rf"\1{MASK}", text) if "://" in text else text
    return text.replace("\n", " ")


def explain(fault: ErrorDetails, fields: Mapping[str, FieldInfo], file: str | None) -> str:
    """Return what is wrong with a setting: its variable, its value unless that is secret, what is allowed.

    Args:
        fault: As pydantic tells it.
        fields: All settings.
        file: That may hold settings too, if there is one.
    """
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    place, given = str(fault["loc"][0]), fault["input"]
    name = _name(place, fields)
    if name is None or fault["type"] == "extra_forbidden":
        return unknown(place, fields, file)
    field = fields[name]
    variable = " or ".join(variables(name, field))
    rule = f": {message}" if fault["type"] == "value_error" else f"; allowed: {allowed(field)}"
    if plain_type(field) is SecretStr:
        return f"{variable} is wrong (its value is not shown){rule}"
    if message.startswith(("must ", "Input ")):
        return f"{variable}: {_clipped(shown(given))!r} is wrong{rule}"
    return f"{variable}: {message}"


def unknown(name: str, fields: Mapping[str, FieldInfo], file: str | None = None) -> str:
    """Return that there is no such setting, and which one may be meant.

    Args:
        name: Of a variable, or of a line of the file.
        fields: All settings.
        file: Where the name is, if it is not the environment.
    """
    every = {one for key, field in fields.items() for one in variables(key, field)}
    known = sorted(every if file is None else fields)
    wanted = name if file is None else name.lower().removeprefix(PREFIX.lower())
    near = difflib.get_close_matches(wanted, known, 1, 0.75)
    place = f" in {file}" if file else ""
    return f"unknown setting {name}{place}{f' (is it {near[0]}?)' if near else ''}"


def _name(place: str, fields: Mapping[str, FieldInfo]) -> str | None:
    """Return the setting that a fault is in: pydantic tells it by its name or by what gave it."""
    if place in fields:
        return place
    return next((name for name, field in fields.items() if place in variables(name, field)), None)


def _range(field: FieldInfo) -> str:
    edges: dict[type, Any] = {}
    for edge in field.metadata:
        if isinstance(edge, Ge):
            edges[Ge] = edge.ge
        elif isinstance(edge, Gt):
            edges[Gt] = edge.gt
        elif isinstance(edge, Le):
            edges[Le] = edge.le
    low = edges.get(Ge)
    if Le in edges:
        return f"{low:g} to {edges[Le]:g}"
    if Gt in edges:
        return f"above {edges[Gt]:g}"
    return "" if low is None else f"{low:g} or more"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
