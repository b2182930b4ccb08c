"""Settings in words: allowed values, values for display, and descriptions of faults."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

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
    return tuple(str(choice) for choice in alias.choices if str(choice).isupper())


def details(field: FieldInfo) -> dict[str, Any]:
    """Return the documentation of a setting beside its type, default and bounds (`fields.Details`)."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def plain_type(field: FieldInfo) -> Any:
    """Return a setting's type without None, and without its validators."""
    found = field.annotation
    if get_origin(found) in (Union, UnionType):
        found = next(part for part in get_args(found) if part is not type(None))
    return get_args(found)[0] if get_origin(found) is Annotated else found


def allowed(field: FieldInfo) -> str:
    """Return the allowed values of a setting in words."""
    kind, about = plain_type(field), details(field)
    if get_origin(kind) is Literal:
        return _listed([f"`{choice}`" for choice in get_args(kind)])
    unit = about.get("unit")
    word = _NUMBERS.get(kind) or _OTHERS[kind]
    if unit:
        word = f"whole number of {unit}" if kind is int else str(unit)
    return ", ".join(filter(None, (about.get("syntax") or word, _range(field))))


def shown(value: object) -> str:
    """Return a value for display, on one line; secrets in it are masked."""
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    text = re.sub(r"(://)[^/?#]*@", rf"\1{MASK}@", text) if "://" in text else text
    # Keys of services are often in the query; the placeholder {ip} is not a secret.
    text = re.sub(r"([?&][^=&\s]+=)(?!\{ip\})[^&\s]+", rf"\1{MASK}", text) if "://" in text else text
    return text.replace("\n", " ")


def explain(fault: ErrorDetails, fields: Mapping[str, FieldInfo], file: str | None) -> str:
    """Return a description of a fault: the variable, its value unless that is secret, and the allowed values.

    Args:
        fault: From pydantic.
        fields: All settings.
        file: The TOML file, if there is one.
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
    """Return a message about an unknown setting, with the setting of the most similar name.

    Args:
        name: A variable, or a key of the file.
        fields: All settings.
        file: The file that holds the name; None for the environment.
    """
    every = {one for key, field in fields.items() for one in variables(key, field)}
    known = every if file is None else fields
    wanted = name if file is None else name.lower().removeprefix(PREFIX.lower())
    near = nearest(wanted, known)
    place = f" in {file}" if file else ""
    return f"unknown setting {name}{place}{f' (is it {near}?)' if near else ''}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that is most similar to a mistyped one; None if none is similar."""
    return next(iter(difflib.get_close_matches(name, sorted(known), 1, 0.72)), None)


def _name(place: str, fields: Mapping[str, FieldInfo]) -> str | None:
    """Return the name of the setting with the fault; pydantic gives that name or the variable."""
    if place in fields:
        return place
    return next((name for name, field in fields.items() if place in variables(name, field)), None)


def _range(field: FieldInfo) -> str:
    bounds: dict[type, Any] = {}
    for edge in field.metadata:
        if isinstance(edge, Ge):
            bounds[Ge] = edge.ge
        elif isinstance(edge, Gt):
            bounds[Gt] = edge.gt
        elif isinstance(edge, Le):
            bounds[Le] = edge.le
    low = bounds.get(Ge)
    if Le in bounds:
        return f"{low:g} to {bounds[Le]:g}"
    if Gt in bounds:
        return f"above {bounds[Gt]:g}"
    return "" if low is None else f"{low:g} or more"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
