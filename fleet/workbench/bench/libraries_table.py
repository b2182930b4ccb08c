"""Figures of our own code beside the libraries', for people."""

from collections.abc import Sequence

from rich.console import Console

from fleet.workbench.bench.libraries import LibraryResult
from fleet.workbench.bench.table_cells import cell, figures_table


def show_libraries(console: Console, results: Sequence[LibraryResult]) -> None:
    """Print what was measured."""
    title = "CPU in microseconds: median (least-most); clients of HTTP and WebSockets included"
    table = figures_table(title, ("operation",), ("own", "library", "library / own"))
    for result in results:
        table.add_row(result.operation, cell(result.own_us), cell(result.library_us), cell(result.ratio))
    console.print(table)
