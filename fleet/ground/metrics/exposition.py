"""The text format of Prometheus; the only module that imports its library."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import METRICS
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import HistogramMetric

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


class _Fleet(Collector):
    """Collects all metrics that have values."""

    def collect(self) -> Iterator[Family]:
        for metric in list(METRICS.values()):
            if isinstance(metric, HistogramMetric):
                yield _histogram(metric)
            elif isinstance(metric, CounterMetric):
                yield _counter(metric)
            elif isinstance(metric, GaugeMetric):
                yield _gauge(metric)

    def describe(self) -> Iterator[Family]:
        # Without this method the library collects all metrics once to find duplicate names.
        return iter(())


def _histogram(metric: HistogramMetric) -> Family:
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))
    bounds = [*(f"{bound:g}" for bound in metric.bounds), "+Inf"]
    for values, tally in metric.tallies.items():
        family.add_metric(list(values), list(zip(bounds, accumulate(tally.counts), strict=True)), tally.sum)
    return family


def _counter(metric: CounterMetric) -> Family:
    family = CounterMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))
    for values, count in sorted(metric.read().items()):
        family.add_metric(list(values), count)
    return family


def _gauge(metric: GaugeMetric) -> Family:
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=list(metric.labels))
    for values, value in sorted(metric.read().items()):
        family.add_metric(list(values), value)
    return family


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Fleet())
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


_REGISTRY: Final = _registry()


def render() -> bytes:
    """Return all metrics in Prometheus's text format."""
    return generate_latest(_REGISTRY)
