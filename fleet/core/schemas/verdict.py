"""What validation finds: valid, invalid or unknown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

MOST_FAULTS = 1_000
MOST_INNER = 4
"""Alternatives of which a fault tells what rules them out."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is certainly wrong with a value."""

    path: Path
    """Where it is in the arguments."""
    schema: Mapping[str, Any]
    """What the value breaks; for an unknown property the schema of the object that has it."""
    kind: Literal["wrong", "missing", "unknown"] = "wrong"
    types: tuple[str, ...] = ()
    """Types of which a right value may be; empty where the type is not what is wrong."""
    inner: tuple["Fault", ...] = ()
    """Of each alternative what rules it out, where none fits."""


Verdict = list[Fault] | None
"""Empty: valid. None: unknown, so that the tool's owner has to validate it."""


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema and the value's place that it is applied to."""

    schema: Mapping[str, Any]
    path: Path
    depth: int

    def fault(self, *types: str) -> list[Fault]:
        return [Fault(self.path, self.schema, types=types)]


class Validation(Protocol):
    """A validation under way, as its keywords see it."""

    @property
    def root(self) -> Mapping[str, Any]:
        """The whole schema."""

    @property
    def furthest(self) -> int:
        """The largest integer that the tool's owner can read, with either sign."""

    def spend(self, steps: int = 1) -> bool:
        """Return whether there are so many steps left, and use them."""

    def apply(self, schema: object, value: object, path: Path, depth: int) -> Verdict:
        """Return the verdict of one schema on one value."""


Check = Callable[[Validation, Any, Any, SchemaPlace], Verdict]
"""A keyword: applies its rule to a value."""


def both(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of schemas that all have to fit."""
    faults: list[Fault] = []
    unknown = False
    for verdict in verdicts:
        unknown = unknown or verdict is None
        faults += verdict or ()
        if len(faults) >= MOST_FAULTS:
            break
    return faults[:MOST_FAULTS] or (None if unknown else [])


def no_alternative(verdicts: Sequence[Verdict], place: SchemaPlace) -> Verdict:
    """Return the verdict of alternatives none of which is known to fit."""
    known = [verdict for verdict in verdicts if verdict]
    if len(known) < len(verdicts):
        return None
    # An alternative that is `null` has nothing to say of a value that is something.
    serious = [faults for faults in known if faults[0].path != place.path or faults[0].types or faults[0].inner]
    if len(serious) == 1:
        return serious[0]
    types = dict.fromkeys(name for faults in known for one in faults if one.path == place.path for name in one.types)
    inner = tuple(faults[0] for faults in known[:MOST_INNER])
    return [Fault(place.path, place.schema, types=tuple(types), inner=inner)]
