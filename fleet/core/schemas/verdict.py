"""The result of a validation: valid, invalid or unknown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

MOST_FAULTS = 1_000
MOST_INNER = 4
"""Alternatives whose faults are kept."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A certain fault of a value."""

    path: Path
    """The value's place in the arguments."""
    schema: Mapping[str, Any]
    """The violated schema; for an unknown property, the schema of the object that has it."""
    kind: Literal["wrong", "missing", "unknown"] = "wrong"
    types: tuple[str, ...] = ()
    """Types of a valid value; empty if the type is not the fault."""
    inner: tuple["Fault", ...] = ()
    """The first fault of each alternative, if none fits."""


Verdict = list[Fault] | None
"""Empty: valid. None: unknown, the tool's owner has to validate the value."""


class SchemaPlace(NamedTuple):
    """A schema and the place of the value that it applies to; a dataclass takes twice as long to make."""

    schema: Mapping[str, Any]
    path: Path
    depth: int

    def fault(self, *types: str) -> list[Fault]:
        return [Fault(self.path, self.schema, types=types)]


class Validation(Protocol):
    """A running validation, for the checks of keywords."""

    @property
    def root(self) -> Mapping[str, Any]:
        """The whole schema."""

    @property
    def furthest(self) -> int:
        """The largest integer that the tool's owner can read, with either sign."""

    def spend(self, steps: int = 1) -> bool:
        """Use some steps; return whether the budget allowed them."""

    def apply(self, schema: object, value: object, path: Path, depth: int) -> Verdict:
        """Return the verdict of one schema on one value."""


Check = Callable[[Validation, Any, Any, SchemaPlace], Verdict]
"""A keyword: applies its rule to a value."""


def both(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of schemas that must all fit."""
    faults: list[Fault] = []
    unknown = False
    for verdict in verdicts:
        if verdict is None:
            unknown = True
        elif verdict:
            faults += verdict
            if len(faults) >= MOST_FAULTS:
                break
    return faults[:MOST_FAULTS] or (None if unknown else [])


def no_alternative(verdicts: Sequence[Verdict], place: SchemaPlace) -> Verdict:
    """Return the verdict of alternatives of which none is known to fit."""
    known = [verdict for verdict in verdicts if verdict]
    if len(known) < len(verdicts):
        return None
    # The fault of the alternative `null` explains nothing about a value that is not null.
    serious = [faults for faults in known if faults[0].path != place.path or faults[0].types or faults[0].inner]
    if len(serious) == 1:
        return serious[0]
    types = dict.fromkeys(name for faults in known for one in faults if one.path == place.path for name in one.types)
    inner = tuple(faults[0] for faults in known[:MOST_INNER])
    return [Fault(place.path, place.schema, types=tuple(types), inner=inner)]
