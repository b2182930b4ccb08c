"""Counts of what happened."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ground.metrics.definition import Labels, Metric, slug

Split = Callable[[str], tuple[str, ...] | None]
"""Gives the labels' values of a followed counter's key; None for a key that is none of this metric's."""


class CounterMetric(Metric):
    """A counter: of its own, and of what others count already in a `Counter`, which is read when somebody asks.

    Args:
        name: Without `_total`.
        meaning: One sentence.
        roles: Those that count.
        labels: With all of their values.
        split: Reads the keys of followed counters.
    """

    kind = "counter"

    def __init__(
        self, name: str, meaning: str, roles: str, labels: Labels | None = None, split: Split = lambda key: (slug(key),)
    ) -> None:
        super().__init__(name, meaning, roles, labels)
        self._split = split
        self._own: Counter[tuple[str, ...]] = Counter()
        self._followed: list[Counter[str]] = []

    def add(self, *values: str) -> None:
        """Count once more under the labels' values."""
        self._own[self.bound(values)] += 1

    @contextmanager
    def following(self, *counters: Counter[str]) -> Iterator[None]:
        """Show what these count during the block, and what they have counted after it."""
        self._followed += counters
        try:
            yield
        finally:
            self._followed = [one for one in self._followed if not any(one is left for left in counters)]
            for counter in counters:
                self._own += self._read(counter)

    def read(self) -> Counter[tuple[str, ...]]:
        """Return all counts by the labels' values."""
        total = self._own.copy()
        for counter in self._followed:
            total.update(self._read(counter))
        if not self.labels:
            total[()] += 0
        return total

    def forget(self) -> None:
        self._own.clear()

    def _read(self, counter: Counter[str]) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for key, count in counter.items():
            values = self._split(key)
            if values is not None:
                found[self.bound(values)] += count
        return found
