"""Counters."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ground.metrics.definition import Labels, Metric, slug

Split = Callable[[str], tuple[str, ...] | None]
"""Returns the label values for a key of a followed `Counter`; None for a key that this metric ignores."""


class CounterMetric(Metric):
    """A counter with its own counts, and those of `Counter` objects of other parts, which it reads on each scrape.

    Args:
        name: Without `_total`.
        meaning: One sentence.
        roles: Roles that have it.
        labels: Labels with all of their values.
        split: Maps the keys of followed counters to label values.
    """

    kind = "counter"

    def __init__(
        self, name: str, meaning: str, roles: str, labels: Labels | None = None, split: Split = lambda key: (slug(key),)
    ) -> None:
        super().__init__(name, meaning, roles, labels)
        self._split = split
        self._own: Counter[tuple[str, ...]] = Counter()
        self._followed: list[Counter[str]] = []

    def add(self, *values: str, count: int = 1) -> None:
        """Add a count under these label values."""
        self._own[self.known_values(values)] += count

    @contextmanager
    def following(self, *counters: Counter[str]) -> Iterator[None]:
        """Include these counters during the block; their counts stay afterwards."""
        self._followed += counters
        try:
            yield
        finally:
            self._followed = [one for one in self._followed if not any(one is left for left in counters)]
            for counter in counters:
                self._own += self._read(counter)

    def read(self) -> Counter[tuple[str, ...]]:
        """Return all counts by label values."""
        total = self._own.copy()
        for counter in self._followed:
            total.update(self._read(counter))
        if not self.labels:
            total[()] += 0
        return total

    def reset(self) -> None:
        self._own.clear()

    def _read(self, counter: Counter[str]) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for key, count in counter.items():
            values = self._split(key)
            if values is not None:
                found[self.known_values(values)] += count
        return found
