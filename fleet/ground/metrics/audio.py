"""Audio: packets in both directions, and sessions."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values, slug
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import HistogramMetric

_RECEIVED: Final = "received"
_NO_DROPS: Final = frozenset({_RECEIVED, "coughs"})
DROPS: Final = label_values("edge_drops")
"""Reasons of drops: the keys of an edge's `counters`, except those that are no drops."""

sessions: Final = GaugeMetric("fleet_sessions", "Sessions on this edge.", "edge")
packets: Final = CounterMetric(
    "fleet_udp_packets_received",
    "Datagrams received, from devices or from any other sender.",
    "edge",
    split=lambda key: () if key == _RECEIVED else None,
)
drops: Final = CounterMetric(
    "fleet_edge_drops",
    "Packets, sentences and inbox entries that an edge dropped, by reason.",
    "edge",
    {"reason": DROPS},
    split=lambda key: None if key in _NO_DROPS else (slug(key),),
)
first_uplink_delay: Final = HistogramMetric(
    "fleet_udp_first_uplink_delay_seconds",
    "From the start of a session to the device's first packets at a proved address.",
    "edge",
    (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
)
loss: Final = HistogramMetric(
    "fleet_udp_loss_ratio",
    "Share of a session's uplink packets that were lost, observed at its end.",
    "edge",
    (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
)
lateness: Final = HistogramMetric(
    "fleet_downlink_frame_lateness_seconds",
    "Delay of the last packet of a tick against its due time, for ticks that sent a packet.",
    "edge",
    (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.5),
)
