"""Figures of `scripts/bench events`, for people."""

from rich.console import Console

from fleet.workbench.bench.events import EventsResult
from fleet.workbench.bench.table_cells import cell, figures_table

MOST_PERCENT, COLLECT_US = 5.0, 60.0
"""What events may add to an operation, and what control may need for one."""


def show_events(console: Console, result: EventsResult) -> None:
    """Print what was measured."""
    title = "CPU in microseconds, worker, edge, Redis and broker together: median (least-most)"
    table = figures_table(title, ("operation",), ("without events", "with events", "more, %"))
    for name, one in result.operations.items():
        table.add_row(name, cell(one.without), cell(one.with_events), f"{one.percent:+.1f}")
    console.print(table)
    for name, one in result.operations.items():
        verdict = "met" if one.percent <= MOST_PERCENT else "missed"
        console.print(f"{name}: {verdict}: {one.percent:+.1f} % (mark: {MOST_PERCENT:g} %)")
    verdict = "met" if result.collect_us.median <= COLLECT_US else "missed"
    us = result.collect_us
    console.print(
        f"control: {verdict}: {us.median:.0f} us an event ({us.least:.0f}-{us.most:.0f}; mark: {COLLECT_US:g}),"
        f" {result.collected} events a round, SQLite"
    )
