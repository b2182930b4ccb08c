"""Every metric there is."""

from collections.abc import Sequence

from fleet.ground.metrics import audio, bounds, broker, calls, http, process, providers, turns
from fleet.ground.metrics.definition import DEFINED, OTHER, Metric

MODULES = (turns, calls, audio, broker, http, providers, process, bounds)


def everything() -> Sequence[Metric]:
    """Return all metrics, by name."""
    return [DEFINED[name] for name in sorted(DEFINED)]


def table() -> str:
    """Return the reference of all metrics as a table in Markdown."""
    lines = ["| metric | kind | roles | labels | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{metric.series}` | {metric.kind} | {', '.join(metric.roles)} | {_labels(metric)} | {metric.meaning} |"
        for metric in everything()
    ]
    return "\n".join(lines) + "\n"


def _labels(metric: Metric) -> str:
    return "; ".join(f"`{label}`: {', '.join((*known, OTHER))}" for label, known in metric.labels.items())
