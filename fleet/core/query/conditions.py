"""The parts of a parsed query. Whoever searches translates them, for instance into SQL."""

from collections.abc import Iterator
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


def comparisons_of(condition: Condition, field: str) -> Iterator[Comparison]:
    """Yield the comparisons of a condition that are on a field."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from comparisons_of(part, field)
    elif isinstance(condition, Negation):
        yield from comparisons_of(condition.part, field)
    elif isinstance(condition, Comparison) and condition.field == field:
        yield condition


def names_field(condition: Condition, field: str) -> bool:
    """Return whether a comparison of a condition is on a field."""
    return any(True for _ in comparisons_of(condition, field))
