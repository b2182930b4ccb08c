"""Desired states of devices."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

rounds: Final = CounterMetric(
    "fleet_state_rounds",
    "Rounds of calls that set properties of a device and ask for its status, by how they ended.",
    "control",
    {"outcome": ("done", "not_sent", "unknown")},
)
active: Final = GaugeMetric("fleet_state_rounds_active", "Such rounds that are under way.", "control")
drifting: Final = GaugeMetric(
    "fleet_devices_drifting", "Devices that report another value than they should, counted once a minute.", "control"
)
