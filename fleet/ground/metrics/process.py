"""The process itself."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

PARTS: Final = ("redis", "broker", "leases", "announced", "udp", "listening")

EMBEDDED: Final = ("broker", "redis")
"""Servers that a process may embed."""

ready: Final = GaugeMetric(
    "fleet_ready",
    "Whether a part of the process is ready (1) or not (0), at the last check of /readyz.",
    "worker edge front api gateway",
    {"part": PARTS},
)
embedded_restarts: Final = CounterMetric(
    "fleet_embedded_restarts",
    "Restarts of an embedded server after it died.",
    "worker edge api gateway",
    {"part": EMBEDDED},
)
