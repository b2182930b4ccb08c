"""Slices: the settings that one part of the server reads, and nothing else (docs/adr/0027-settings-by-role.md)."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from fleet.ground.settings import Settings


class SettingsSlice(Protocol):
    """A frozen dataclass whose fields have names and types of settings."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Slice = TypeVar("Slice", bound=SettingsSlice)


def slice_of(settings: "Settings", kind: type[Slice]) -> Slice:
    """Return the slice of a kind: each field is the setting of its name."""
    return kind(**{field.name: getattr(settings, field.name) for field in fields(kind)})
