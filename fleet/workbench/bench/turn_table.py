"""Figures of the benchmark of single turns, for people."""

from collections.abc import Sequence

from rich.console import Console

from fleet.workbench.bench.table_cells import cell, figures_table
from fleet.workbench.bench.turn import PARTS, TurnResult

_SLOW = 0.8
"""Share of the turns a second without fleet; below it the figures are limited by the machine."""


def show_turn(console: Console, cases: Sequence[TurnResult]) -> None:
    """Print what was measured."""
    title = "Milliseconds added to a turn, and its CPU in microseconds: median (least-most)"
    waits = ("to first\nsentence p50", "p99", "to the end\np50", "p99", "without\nfleet p50", "p99")
    table = figures_table(title, (), ("at once", "turns\n(a second)", *waits, *PARTS, "lost"))
    for case in cases:
        times = (case.first_ms, case.last_ms, case.direct_ms)
        table.add_row(
            str(case.at_once),
            f"{case.turns}\n({case.rate:.0f})",
            *(f"{value:.1f}" for one in times for value in (one.p50, one.p99)),
            *(cell(case.us[part]) for part in PARTS),
            str(case.lost),
        )
    console.print(table)
    console.print(
        "to first sentence: from when the model writes its first token, which is a whole sentence, to when the client"
        " has it; to the end: from its last token to the whole answer; without fleet: the client asks the model itself."
        " Model and clients share one process, and that one the machine with the others."
    )
    for case in cases:
        if case.rate < _SLOW * case.direct_rate:
            console.print(
                f"{case.at_once} at once: {case.rate:.1f} turns a second, {case.direct_rate:.1f} without fleet; there"
                " were not cores enough, so this measures the machine.",
                style="yellow",
            )
