"""What all tables of benchmarks share: the machine above them, and figures with their spread."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.machine import Machine

_LARGE = 100
"""From this value on, figures are shown without a decimal."""


def show_machine(console: Console, machine: Machine) -> None:
    """Print what it was measured on, and how busy that was."""
    console.print(f"{machine.cpu}, {machine.cores} cores, {machine.python}, {machine.system}, {machine.date}")
    console.print(f"{machine.busy:.1f} processes wanted a core in the minute before.")


def figures_table(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """Return an empty table with columns for texts, then columns for figures."""
    columns = [*map(Column, texts), *(Column(name, justify="right") for name in figures)]
    return Table(*columns, title=title, title_justify="left")


def cell(figure: Spread | None) -> str:
    """Return the middle of a figure and, below it, its ends where they differ; a dash for none."""
    if figure is None:
        return "-"
    digits = 0 if figure.most >= _LARGE else 1
    middle = f"{figure.median:.{digits}f}"
    if figure.least == figure.most:
        return middle
    return f"{middle}\n({figure.least:.{digits}f}-{figure.most:.{digits}f})"
