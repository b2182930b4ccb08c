"""Histograms of times and ratios."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from fleet.ground.metrics.definition import Labels, Metric

SECONDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0)
"""Bounds for waits of users, in seconds."""
SHORT: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Bounds for waits of machines, in seconds."""


class Tally:
    """The observations under one set of label values."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Observations in each bucket; the last bucket is above all bounds."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class HistogramMetric(Metric):
    """A histogram.

    Args:
        name: Ends with its unit.
        meaning: One sentence.
        roles: Roles that have it.
        bounds: Upper bounds of the buckets, in ascending order.
        labels: Labels with all of their values.
    """

    kind = "histogram"

    def __init__(
        self, name: str, meaning: str, roles: str, bounds: Sequence[float] = SECONDS, labels: Labels | None = None
    ) -> None:
        super().__init__(name, meaning, roles, labels)
        self.bounds = tuple(bounds)
        self.tallies: dict[tuple[str, ...], Tally] = {}
        if not self.labels:
            self.tally()

    def observe(self, value: float, *values: str) -> None:
        """Count a value, in seconds or as a ratio, under these label values."""
        self.tally(*values).observe(value)

    def tally(self, *values: str) -> Tally:
        """Return the tally of these label values, for callers that count often."""
        key = self.known_values(values)
        found = self.tallies.get(key)
        if found is None:
            found = self.tallies[key] = Tally(self.bounds)
        return found

    def reset(self) -> None:
        # In place: callers keep references to tallies.
        for tally in self.tallies.values():
            tally.counts[:] = [0] * len(tally.counts)
            tally.sum = 0.0
