"""What commands read from people: fields as `name=value`, documents from files, and secrets."""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from fleet.ground.errors import ConfigError
from fleet.ground.terminal import visible

Model = TypeVar("Model", bound=BaseModel)
_LONGEST_FILE = 1_000_000
"""Bytes."""


def read_pair(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`; a value that is JSON is read as such, any other is text.

    Raises:
        ConfigError: It has no name or no equals sign.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"write name=value: {visible(text)}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def with_fields(document: Mapping[str, Any], pairs: Sequence[str], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return a copy of a document with some fields set, as `voice.name=onyx`, and others removed.

    Raises:
        ConfigError: A pair is malformed, or a name leads through a field that has no parts.
    """
    whole: dict[str, Any] = json.loads(json.dumps(document))
    for path, value in [read_pair(pair) for pair in pairs] + [(path, None) for path in without]:
        *outer, name = path.split(".")
        place = whole
        for part in outer:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ConfigError(f"there is no field {visible(path)}")
        if value is None:
            place.pop(name, None)
        else:
            place[name] = value
    return whole


def read_document(file: Path) -> dict[str, Any]:
    """Return the object of a file: TOML if its name ends with .toml, else JSON; `-` is the standard input.

    Raises:
        ConfigError: It cannot be read, or is no object.
    """
    text = _read(file)
    try:
        found = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{file} must hold an object")
    return found


def read_secret(file: Path) -> str:
    """Return the secret that a file has in its one line; `-` is the standard input, where a terminal asks for it.

    Raises:
        ConfigError: It cannot be read, is empty, or has several lines.
    """
    if str(file) == "-" and sys.stdin.isatty():
        return str(typer.prompt("Key", hide_input=True, err=True))
    secret = _read(file).strip()
    if not secret or not secret.isprintable():
        raise ConfigError(f"{file} must hold the secret in one line")
    return secret


def checked(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return what people wrote as a request.

    Raises:
        ConfigError: A field is wrong; the message names it, but no value.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc']))}: {visible(one['msg'])}" for one in error.errors()[:5]]
        raise ConfigError("; ".join(faults)) from None


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(_LONGEST_FILE + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(_LONGEST_FILE + 1)
        if len(content) > _LONGEST_FILE:
            raise ConfigError(f"{file} has more than {_LONGEST_FILE} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error
