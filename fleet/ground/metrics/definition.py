"""The base of metrics: a name, a meaning, and labels with values from fixed sets."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

OTHER: Final = "other"
"""Replaces unknown label values, so that clients cannot create new time series."""

Kind = Literal["counter", "gauge", "histogram"]
Labels = Mapping[str, Sequence[str]]
"""All values of each label, except `OTHER`."""

_VALUES: Final[dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("label_values.json").read_text(encoding="utf-8")
)


class Metric(ABC):
    """A metric; created once, at the import of its module.

    Args:
        name: The name in Prometheus, without `_total`.
        meaning: One sentence.
        roles: Roles that have it, `worker edge`.
        labels: Labels with all of their values.
    """

    kind: Kind

    def __init__(self, name: str, meaning: str, roles: str, labels: Labels | None = None) -> None:
        self.name = name
        self.meaning = meaning
        self.roles = tuple(roles.split())
        self.labels: dict[str, tuple[str, ...]] = {label: tuple(known) for label, known in (labels or {}).items()}
        self._known = [frozenset(known) for known in self.labels.values()]
        if METRICS.setdefault(name, self) is not self:
            raise ValueError(f"there are two metrics {name}")

    @property
    def series(self) -> str:
        """The name in queries."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    def known_values(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the label values, unknown ones replaced by `OTHER`."""
        if not values and not self._known:
            return ()
        return tuple(value if value in known else OTHER for value, known in zip(values, self._known, strict=True))

    @abstractmethod
    def reset(self) -> None:
        """Delete all values, for tests."""


METRICS: Final[dict[str, Metric]] = {}
"""All metrics of imported modules, by name."""


def slug(text: str) -> str:
    """Return a text as a label value: `hello: too often` becomes `hello_too_often`."""
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def slugs(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(slug(text) for text in texts)


def label_values(name: str) -> tuple[str, ...]:
    """Return the values of a label with many values, from `label_values.json`."""
    return tuple(_VALUES[name])
