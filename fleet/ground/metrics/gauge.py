"""How much there is of something now."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ground.metrics.definition import Labels, Metric

Reading = Callable[[], float | None]
"""Returns the value now; None while there is none."""


class GaugeMetric(Metric):
    """A gauge: what is asked when somebody looks, summed up where a process has more than one of it.

    Args:
        name: Ends with its unit, if it has one.
        meaning: One sentence.
        roles: Those that have it.
        labels: With all of their values.
    """

    kind = "gauge"

    def __init__(self, name: str, meaning: str, roles: str, labels: Labels | None = None) -> None:
        super().__init__(name, meaning, roles, labels)
        self._readings: list[tuple[tuple[str, ...], Reading]] = []

    @contextmanager
    def following(self, reading: Reading, *values: str) -> Iterator[None]:
        """Show what `reading` returns during the block, under the labels' values."""
        entry = (self.bound(values), reading)
        self._readings.append(entry)
        try:
            yield
        finally:
            self._readings.remove(entry)

    def read(self) -> dict[tuple[str, ...], float]:
        """Return all values by those of the labels."""
        found: dict[tuple[str, ...], float] = {}
        for values, reading in self._readings:
            if (value := reading()) is not None:
                found[values] = found.get(values, 0.0) + value
        return found

    def forget(self) -> None:
        self._readings.clear()
