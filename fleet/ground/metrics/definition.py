"""What every metric has: a name, a meaning, and labels with values from fixed sets."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

OTHER: Final = "other"
"""Stands for a label's value that is none of those that are known, so that nobody outside can make new time series."""

Kind = Literal["counter", "gauge", "histogram"]
Labels = Mapping[str, Sequence[str]]
"""For each label all values that it can have, besides `OTHER`."""


class Metric(ABC):
    """A metric; made once, when its module is imported.

    Args:
        name: As Prometheus shows it, without `_total`.
        meaning: One sentence.
        roles: Those that measure it, `worker edge`.
        labels: With all of their values.
    """

    kind: Kind

    def __init__(self, name: str, meaning: str, roles: str, labels: Labels | None = None) -> None:
        self.name = name
        self.meaning = meaning
        self.roles = tuple(roles.split())
        self.labels: dict[str, tuple[str, ...]] = {label: tuple(known) for label, known in (labels or {}).items()}
        self._known = [frozenset(known) for known in self.labels.values()]
        if DEFINED.setdefault(name, self) is not self:
            raise ValueError(f"there are two metrics {name}")

    @property
    def series(self) -> str:
        """The name under which queries find it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    def bound(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the labels' values, `OTHER` for those that are not known."""
        return tuple(value if value in known else OTHER for value, known in zip(values, self._known, strict=True))

    @abstractmethod
    def forget(self) -> None:
        """Begin anew, for tests."""


DEFINED: Final[dict[str, Metric]] = {}
"""Every metric of this process's imported modules, by name."""


def slug(text: str) -> str:
    """Return a text as a label's value: `hello: too often` is `hello_too_often`."""
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def slugs(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(slug(text) for text in texts)
