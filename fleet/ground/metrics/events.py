"""Events: how they are collected, and who follows them."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import SECONDS, HistogramMetric

stored: Final = CounterMetric("fleet_events", "Events that were stored.", "control")
lost: Final = CounterMetric(
    "fleet_events_lost", "Events that a shard dropped because control did not collect them in time.", "control"
)
lag: Final = HistogramMetric(
    "fleet_event_lag_seconds", "Age of the oldest event of a batch when it was stored.", "control", SECONDS
)
followers: Final = GaugeMetric("fleet_event_followers", "Clients that follow events now.", "control")
slow_followers: Final = CounterMetric(
    "fleet_event_followers_dropped", "Clients that were dropped because they read too slowly.", "control"
)
