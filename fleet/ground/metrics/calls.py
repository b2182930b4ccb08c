"""Calls of tools: the device's, the server's own, and those of gateway clients."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import SECONDS, HistogramMetric

PLACES: Final = ("device", "server", "client")
OUTCOMES: Final = ("ok", "error", "not_sent", "unknown", "refused")
"""As `fleet.roles.worker.calls.device_calls` has them. A gateway client's call that nobody answered is unknown. A
refused one was never begun: there is no such tool, or the arguments do not fit its schema."""

duration: Final = HistogramMetric(
    "fleet_tool_call_duration_seconds",
    "From a call's beginning to its outcome, by where the tool runs.",
    "worker gateway",
    SECONDS,
    {"place": PLACES},
)
outcomes: Final = CounterMetric(
    "fleet_tool_calls",
    "Calls by their outcome; unknown ones may have happened, refused ones name no tool or do not fit its schema.",
    "worker gateway",
    {"place": PLACES, "outcome": OUTCOMES},
)
pending: Final = GaugeMetric(
    "fleet_pending_calls", "Calls to devices of this worker's shards that wait for an answer.", "worker"
)


def end(place: str, outcome: str, seconds: float) -> None:
    """Note that a call has ended."""
    duration.observe(seconds, place)
    outcomes.add(place, outcome)


def refuse(place: str) -> None:
    """Note that a call was refused before it began."""
    outcomes.add(place, "refused")
