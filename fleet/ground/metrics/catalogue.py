"""All metrics."""

from collections.abc import Sequence

from fleet.ground.metrics import (
    accounts,
    alerts,
    announcements,
    audio,
    bounds,
    broker,
    calls,
    events,
    http,
    jobs,
    process,
    providers,
    reminders,
    states,
    turns,
)
from fleet.ground.metrics.definition import METRICS, OTHER, Metric

MODULES = (
    turns,
    calls,
    audio,
    broker,
    http,
    providers,
    process,
    bounds,
    events,
    jobs,
    alerts,
    accounts,
    states,
    announcements,
    reminders,
)


def all_metrics() -> Sequence[Metric]:
    """Return all metrics in the order of their names."""
    return [METRICS[name] for name in sorted(METRICS)]


def table() -> str:
    """Return the Markdown table of all metrics."""
    lines = ["| metric | kind | roles | labels | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{metric.series}` | {metric.kind} | {', '.join(metric.roles)} | {_labels(metric)} | {metric.meaning} |"
        for metric in all_metrics()
    ]
    return "\n".join(lines) + "\n"


def _labels(metric: Metric) -> str:
    return "; ".join(f"`{label}`: {', '.join((*known, OTHER))}" for label, known in metric.labels.items())
