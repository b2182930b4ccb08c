"""The process itself."""

from typing import Final

from fleet.metrics.gauge import GaugeMetric

PARTS: Final = ("redis", "broker", "leases", "announced", "udp", "listening")

ready: Final = GaugeMetric(
    "fleet_ready",
    "Whether a part of the process is ready (1) or not (0), as /readyz saw it last.",
    "worker edge front api gateway",
    {"part": PARTS},
)
