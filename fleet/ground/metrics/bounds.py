"""Bounds over all devices and clients together: the use of each bound, and dropped log lines."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fleet.ground import log_sampling
from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values
from fleet.ground.metrics.gauge import GaugeMetric

BOUNDS: Final = label_values("bounds")
_ROLES: Final = "worker edge front api gateway"

used: Final = GaugeMetric(
    "fleet_bound_used", "Current use of a bound; the process refuses what exceeds it.", _ROLES, {"bound": BOUNDS}
)
limit: Final = GaugeMetric("fleet_bound_limit", "Limit of a bound.", _ROLES, {"bound": BOUNDS})
log_lines: Final = CounterMetric(
    "fleet_log_lines_left_out",
    "Log lines dropped because their message exceeded FLEET_LOG_RATE.",
    _ROLES,
    split=lambda _: (),
)


@contextmanager
def following(bound: str, now: Callable[[], float | None], most: float) -> Iterator[None]:
    """Export the use of a bound during the block.

    Args:
        bound: One of `BOUNDS`.
        now: Returns the current use; None while it is unknown.
        most: The limit.
    """
    with used.following(now, bound), limit.following(lambda: most, bound):
        yield


@contextmanager
def following_log_sampling(left_out: Counter[str] = log_sampling.left_out) -> Iterator[None]:
    """Export the number of dropped log lines during the block."""
    with log_lines.following(left_out):
        yield
