"""The documentation of every setting, in groups: the content of `fleet settings`."""

import ast
import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, cast

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from fleet.ground.settings import Settings
from fleet.ground.settings.fields import Masked, SettingGroup
from fleet.ground.settings.wording import allowed, details, plain_type, shown, variables

GATEWAY_DOCUMENT: Final[Mapping[str, tuple[str, str]]] = tomllib.loads(
    Path(__file__).with_name("gateway_document.toml").read_text(encoding="utf-8")
)
"""Section 8 of the LLM Gateway API's document: parameter and default of each variable."""


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """The documentation of one setting."""

    name: str
    variable: str
    also: str
    """A second variable that sets it; empty if there is none."""
    allowed: str
    default: str
    """As the value of a variable; empty if there is no default."""
    unset: str
    """The effective value while it is not set and has no default."""
    roles: tuple[str, ...]
    roles_only: bool
    equal: bool
    masked: Masked | None
    meaning: str


@dataclass(frozen=True, slots=True)
class SettingsGroup:
    """Settings that belong together."""

    title: str
    purpose: str
    entries: tuple[SettingEntry, ...]


def groups() -> tuple[SettingsGroup, ...]:
    """Return all settings in their groups."""
    return tuple(
        SettingsGroup(part.title, _one_line(part.__doc__), _entries(part))
        for part in Settings.__bases__
        if issubclass(part, SettingGroup)
    )


def roles_only_variables() -> str:
    """Return the variables that `fleet up` does not read, separated by commas."""
    names = [entry.variable for group in groups() for entry in group.entries if entry.roles_only]
    return ", ".join(f"`{one}`" for one in names)


def is_changed(name: str, settings: Settings) -> bool:
    """Return whether a setting differs from its default."""
    return bool(getattr(settings, name) != default_of(name))


def default_of(name: str) -> object:
    """Return the default of a setting on this machine."""
    return Settings.model_fields[name].get_default(call_default_factory=True, validated_data={})


def _entries(group: type[SettingGroup]) -> tuple[SettingEntry, ...]:
    meanings = _docstrings(group)
    return tuple(_entry(name, field, meanings.get(name, "")) for name, field in group.model_fields.items())


def _docstrings(group: type[SettingGroup]) -> dict[str, str]:
    """Return the docstring below each setting. Pydantic could read them too, but at each start of every process."""
    tree = cast("ast.ClassDef", ast.parse(inspect.getsource(group)).body[0])
    found: dict[str, str] = {}
    for field, text in pairwise(tree.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                found[name] = meaning
    return found


def _entry(name: str, field: FieldInfo, meaning: str) -> SettingEntry:
    usual, *others = variables(name, field)
    about = details(field)
    masked: Masked | None = "value" if plain_type(field) is SecretStr else about.get("masked")
    return SettingEntry(
        name=name,
        variable=usual,
        also=", ".join(others),
        allowed=allowed(field),
        default="" if field.default_factory else _default(field.default),
        unset=about.get("unset", "none" if field.default is None else ""),
        roles=tuple(about["roles"]),
        roles_only=about.get("roles_only", False),
        equal=about.get("equal", False),
        masked=masked,
        meaning=_one_line(meaning),
    )


def _default(value: object) -> str:
    """Return a default in a form that is the same for all users: a path below the home folder begins with `~`."""
    if isinstance(value, Path) and value.is_relative_to(Path.home()):
        return f"~/{value.relative_to(Path.home())}"
    return shown(value)


def _one_line(docstring: str | None) -> str:
    return " ".join((docstring or "").split())
