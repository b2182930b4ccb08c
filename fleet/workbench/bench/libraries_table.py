"""Figures of our own code beside the libraries', for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from fleet.workbench.bench.libraries import LibraryResult
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.table_cells import cell, show_machine


def show_libraries(console: Console, machine: Machine, results: Sequence[LibraryResult]) -> None:
    """Print what was measured."""
    show_machine(console, machine)
    table = Table(title="CPU in microseconds: median (least-most); clients of HTTP and WebSockets included")
    for column in ("operation", "own", "library", "library / own"):
        table.add_column(column)
    for result in results:
        table.add_row(result.operation, cell(result.own_us), cell(result.library_us), cell(result.ratio))
    console.print(table)
