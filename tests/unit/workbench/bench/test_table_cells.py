from rich.console import Console

from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.table_cells import cell, figures_table, show_machine


def test_the_machine_is_shown_above_the_tables() -> None:
    console = Console(record=True, width=120)
    show_machine(console, Machine("a cpu", 2, "CPython 3.11", "Linux", 0.5, "2026-01-01"))
    assert console.export_text().splitlines() == [
        "a cpu, 2 cores, CPython 3.11, Linux, 2026-01-01",
        "0.5 processes wanted a core in the minute before.",
    ]


def test_texts_are_on_the_left_of_their_columns_and_figures_on_the_right() -> None:
    table = figures_table("title", ["name"], ["us", "ms"])
    assert [column.header for column in table.columns] == ["name", "us", "ms"]
    assert [column.justify for column in table.columns] == ["left", "right", "right"]


def test_a_cell_shows_the_spread_only_where_there_is_one() -> None:
    assert [cell(None), cell(Spread(1, 1, 1)), cell(Spread(2, 1, 3))] == ["-", "1.0", "2.0\n(1.0-3.0)"]
