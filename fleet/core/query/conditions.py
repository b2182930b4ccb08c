"""The parts of a parsed query. Whoever searches translates them, for instance into SQL."""

from dataclasses import dataclass
from typing import TypeAlias


class QueryError(ValueError):
    """A query cannot be read.

    Args:
        message: What is wrong, for the user who wrote the query.
        position: Of the first wrong character, from 0.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class FreeText:
    """A word without a field: what a person types to find a device by its name, MAC or notes."""

    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one field.

    `operator` is one of `= != < <= > >= :`. The type of `value` is that of the field; versions and times are integers
    (`fleet.core.query.fields`). `key` is the part after the dot of a field with keys (`tag.site`), else empty.
    """

    field: str
    operator: str
    value: str | int | bool
    key: str = ""


@dataclass(frozen=True, slots=True)
class Negation:
    """True where its part is not."""

    part: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """True where all parts are; without parts always."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True where at least one part is."""

    parts: "tuple[Condition, ...]"


Condition: TypeAlias = FreeText | Comparison | Negation | AllOf | AnyOf
EVERYTHING = AllOf(())
"""The condition of an empty query."""


def names_field(condition: Condition, field: str) -> bool:
    """Return whether a comparison of a condition is on a field."""
    if isinstance(condition, AllOf | AnyOf):
        return any(names_field(part, field) for part in condition.parts)
    if isinstance(condition, Negation):
        return names_field(condition.part, field)
    return isinstance(condition, Comparison) and condition.field == field
