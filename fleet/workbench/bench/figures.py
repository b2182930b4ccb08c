"""Figures of a benchmark: measured several times, with the median and the spread."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure, measured several times."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A distribution."""

    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Percentiles":
        """Return zeros of nothing."""
        if not values:
            return cls(0.0, 0.0, 0.0)
        ordered = sorted(values)
        return cls(ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], ordered[-1])
