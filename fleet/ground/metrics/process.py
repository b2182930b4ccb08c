"""The process itself."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

PARTS: Final = ("redis", "broker", "leases", "announced", "udp", "listening")

EMBEDDED: Final = ("broker", "redis")
"""Servers that a process may bring along."""

ready: Final = GaugeMetric(
    "fleet_ready",
    "Whether a part of the process is ready (1) or not (0), as /readyz saw it last.",
    "worker edge front api gateway",
    {"part": PARTS},
)
embedded_restarts: Final = CounterMetric(
    "fleet_embedded_restarts",
    "Starts of an embedded server after it died by itself.",
    "worker edge api gateway",
    {"part": EMBEDDED},
)
