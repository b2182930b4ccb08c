"""Bounds over all devices and clients together: how much of each is used, and what was left out of the log."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fleet.ground import log_sampling
from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

BOUNDS: Final = (
    "broker_devices",
    "broker_memory_bytes",
    "edge_sessions",
    "front_connections",
    "front_strangers",
    "gateway_clients",
    "gateway_passing",
    "gateway_sessions",
    "gateway_texts_bytes",
    "gateway_tools_characters",
    "http_connections",
    "new_devices",
    "tool_lists_bytes",
)
_ROLES: Final = "worker edge front api gateway"

used: Final = GaugeMetric(
    "fleet_bound_used", "How much of a bound is used; what is beyond it is refused.", _ROLES, {"bound": BOUNDS}
)
limit: Final = GaugeMetric("fleet_bound_limit", "The bound itself.", _ROLES, {"bound": BOUNDS})
log_lines: Final = CounterMetric(
    "fleet_log_lines_left_out",
    "Lines that are not in the log because there were too many of their message, see FLEET_LOG_RATE.",
    _ROLES,
    split=lambda _: (),
)


@contextmanager
def following(bound: str, now: Callable[[], float | None], most: float) -> Iterator[None]:
    """Show how much of a bound is used during the block.

    Args:
        bound: One of `BOUNDS`.
        now: Returns how much is used; None while nobody knows.
        most: The bound.
    """
    with used.following(now, bound), limit.following(lambda: most, bound):
        yield


@contextmanager
def following_log(left_out: Counter[str] = log_sampling.left_out) -> Iterator[None]:
    """Show what the log leaves out during the block."""
    with log_lines.following(left_out):
        yield
