"""The dashboard as deploy/grafana/fleet.json has it: panels with their places, units and queries."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "deploy/grafana/fleet.json"
COLUMNS = 24
"""Widths are given in these."""
ALL = ".*"
"""What Grafana puts in for a variable of which everything is chosen; also matches series without the label."""


@dataclass(frozen=True, slots=True)
class Place:
    """In columns and rows of the grid."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and how its series are named: `{{label}}` stands for a label's value."""

    expr: str
    legend: str

    def at(self, rate_interval: float, site: str = ALL, role: str = ALL) -> str:
        """Return the expression as Prometheus takes it, for the sites and roles that match two regular expressions."""
        expr = self.expr.replace("$__rate_interval", f"{rate_interval:g}s")
        return expr.replace("$site", site).replace("$role", role)

    def name(self, labels: dict[str, str]) -> str:
        """Return the name of a series."""
        name = self.legend
        for label, value in labels.items():
            name = name.replace("{{" + label + "}}", value)
        return name


@dataclass(frozen=True, slots=True)
class Panel:
    """`kind` is `row` (a heading), `stat` or `timeseries`."""

    kind: str
    title: str
    place: Place
    unit: str
    queries: tuple[Query, ...]


def read(path: Path = PATH) -> tuple[Panel, ...]:
    """Return the panels in their order."""
    return tuple(_panel(one) for one in json.loads(path.read_text(encoding="utf-8"))["panels"])


def filters(path: Path = PATH) -> tuple[str, ...]:
    """Return the labels of the variables by which everything is filtered."""
    variables = json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]
    return tuple(one["label"] for one in variables if one["type"] == "query")


def _panel(one: dict[str, Any]) -> Panel:
    grid = one["gridPos"]
    unit = one.get("fieldConfig", {}).get("defaults", {}).get("unit", "short")
    queries = tuple(Query(target["expr"], target.get("legendFormat", "")) for target in one.get("targets", []))
    return Panel(one["type"], one["title"], Place(grid["x"], grid["y"], grid["w"], grid["h"]), unit, queries)


def rate_interval(scrape: float, step: float) -> float:
    """Return what Grafana puts in for `$__rate_interval`, all in seconds."""
    return max(step + scrape, 4 * scrape)
