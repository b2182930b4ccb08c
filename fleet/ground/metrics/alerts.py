"""Alerts of the rules about devices, tools and jobs."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

_RULES: Final = ("flapping", "silent", "drift", "tools", "jobs", "waiting")
opened: Final = CounterMetric("fleet_alerts_opened", "Alerts that opened, by rule.", "control", {"rule": _RULES})
now_open: Final = GaugeMetric("fleet_alerts_open", "Alerts that are open, by rule.", "control", {"rule": _RULES})


@contextmanager
def following_open(counts: Mapping[str, int]) -> Iterator[None]:
    """Export how many alerts of each rule are open, during the block."""
    with ExitStack() as stack:
        for rule in _RULES:
            stack.enter_context(now_open.following(partial(counts.get, rule), rule))
        yield
