"""What a change did: the figures of two results of a benchmark, side by side."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from fleet.ground.errors import ConfigError
from fleet.workbench.bench.figures import Spread

_NAMES = ("server", "devices", "shards", "streams", "codecs", "asked", "at_once", "workers")
"""Members that tell the entries of a list apart."""
_PERCENTILES = ("p50", "p99")


def read_figures(path: Path) -> dict[str, Spread]:
    """Return the figures of a file that `--json` wrote, by name.

    Raises:
        ConfigError: There is no such file, or it is not JSON.
    """
    try:
        return figures_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the figures of {path}: {error}") from error


def figures_of(document: JsonValue) -> dict[str, Spread]:
    """Return all figures of a result, by name; a percentile has no spread."""
    return {" ".join(path): figure for path, figure in _walk(document, ())}


def _walk(value: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Spread]]:
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    elif isinstance(value, dict) and value.keys() == {"median", "least", "most"}:
        yield path, Spread(**{name: float(str(figure)) for name, figure in value.items()})
    elif isinstance(value, dict):
        case = tuple(f"{name}={value[name]}" for name in _NAMES if isinstance(value.get(name), str | int | float))
        for name, member in value.items():
            if name in _PERCENTILES and isinstance(member, int | float):
                yield (*path, name), Spread(member, member, member)
            elif name not in ("plan", "machine"):
                yield from _walk(member, (*path, *case, name) if isinstance(member, dict | list) else path)


def show_changes(console: Console, before: dict[str, Spread], now: dict[str, Spread]) -> None:
    """Print the figures that both have, with their ratio; `*` marks figures whose windows do not overlap."""
    table = Table(title="before and now, medians", title_justify="left")
    table.add_column("figure")
    for name in ("before", "now", "ratio", ""):
        table.add_column(name, justify="right")
    for name, figure in now.items():
        old = before.get(name)
        if old and (old.median or figure.median):
            apart = figure.least > old.most or figure.most < old.least
            ratio = f"{figure.median / old.median:.2f}" if old.median else "-"
            table.add_row(name, f"{old.median:.1f}", f"{figure.median:.1f}", ratio, "*" if apart else "")
    console.print(table)
    console.print("*: the windows of the two results do not overlap, or it is a percentile that changed.")
