"""All metrics."""

import re
import textwrap
from collections.abc import Iterator, Sequence

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


LONGEST_CELL = 200
"""Characters of a cell of the table; what does not fit stands below the table."""


def all_metrics() -> Sequence[Metric]:
    """Return all metrics in the order of their names."""
    return [METRICS[name] for name in sorted(METRICS)]


def table() -> str:
    """Return the Markdown table of all metrics, and below it what is too long for a cell."""
    lines = ["| metric | kind | roles | labels | meaning |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_cells(metric))} |" for metric in all_metrics()]
    further = [
        _wrapped(f"- `{metric.series}`: {' '.join(parts)}") for metric in all_metrics() if (parts := _long(metric))
    ]
    return "\n".join([*lines, "", *further]) + "\n"


def _cells(metric: Metric) -> Iterator[str]:
    labels, meaning = _labels(metric), metric.meaning
    yield f"`{metric.series}`"
    yield metric.kind
    yield ", ".join(metric.roles)
    yield labels if _fits(labels) else ", ".join(f"`{label}`" for label in metric.labels) + " …"
    yield meaning if _fits(meaning) else re.split("[.:;]", meaning)[0] + " …"


def _long(metric: Metric) -> list[str]:
    """Return what the row of a metric leaves out."""
    labels = _labels(metric)
    return [*([] if _fits(metric.meaning) else [metric.meaning]), *([] if _fits(labels) else [f"{labels}."])]


def _labels(metric: Metric) -> str:
    return "; ".join(f"`{label}`: {', '.join((*known, OTHER))}" for label, known in metric.labels.items())


def _fits(cell: str) -> bool:
    return len(cell) <= LONGEST_CELL


def _wrapped(item: str) -> str:
    return textwrap.fill(item, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
