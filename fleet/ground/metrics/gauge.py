"""Gauges."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ground.metrics.definition import Labels, Metric

Reading = Callable[[], float | None]
"""Returns the current value; None while there is none."""


class GaugeMetric(Metric):
    """A gauge whose values are read on each scrape; several readings with equal label values are added.

    Args:
        name: Ends with its unit, if it has one.
        meaning: One sentence.
        roles: Roles that have it.
        labels: Labels with all of their values.
    """

    kind = "gauge"

    def __init__(self, name: str, meaning: str, roles: str, labels: Labels | None = None) -> None:
        super().__init__(name, meaning, roles, labels)
        self._readings: list[tuple[tuple[str, ...], Reading]] = []

    @contextmanager
    def following(self, reading: Reading, *values: str) -> Iterator[None]:
        """Export the result of `reading` under these label values during the block."""
        entry = (self.known_values(values), reading)
        self._readings.append(entry)
        try:
            yield
        finally:
            self._readings.remove(entry)

    def read(self) -> dict[tuple[str, ...], float]:
        """Return all values by label values."""
        found: dict[tuple[str, ...], float] = {}
        for values, reading in self._readings:
            if (value := reading()) is not None:
                found[values] = found.get(values, 0.0) + value
        return found

    def reset(self) -> None:
        self._readings.clear()
