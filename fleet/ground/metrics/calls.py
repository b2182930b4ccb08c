"""Calls of tools: of devices, of the server, and of gateway clients."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import SECONDS, HistogramMetric

PLACES: Final = ("device", "server", "client")
OUTCOMES: Final = ("ok", "error", "not_sent", "unknown", "refused")
"""As in `fleet.roles.worker.calls.device_calls`. A call of a gateway client's tool without a result is unknown. A
refused call was never begun: there is no such tool, or the arguments do not match its schema."""

duration: Final = HistogramMetric(
    "fleet_tool_call_duration_seconds",
    "From the start of a call to its outcome, by the place of the tool.",
    "worker gateway",
    SECONDS,
    {"place": PLACES},
)
outcomes: Final = CounterMetric(
    "fleet_tool_calls",
    "Calls by outcome; unknown: the tool may have run; refused: unknown tool or arguments against its schema.",
    "worker gateway",
    {"place": PLACES, "outcome": OUTCOMES},
)
pending: Final = GaugeMetric(
    "fleet_pending_calls", "Calls to devices of this worker's shards that wait for their result.", "worker"
)


def end(place: str, outcome: str, seconds: float) -> None:
    """Count a call that ended."""
    duration.observe(seconds, place)
    outcomes.add(place, outcome)


def refuse(place: str) -> None:
    """Count a call that was refused before it began."""
    outcomes.add(place, "refused")
