"""Figures of the benchmark of bootstrap, for people."""

from collections.abc import Sequence

from rich.console import Console

from fleet.workbench.bench.bootstrap import PARTS, BootstrapResult
from fleet.workbench.bench.table_cells import cell, figures_table

MARK_RATE, MARK_MS = 500.0, 5000.0
"""The goal for many devices that boot at once: requests a second, and the 99th percentile of their waits."""
_ENOUGH = 0.9
"""Share of the wanted rate; below it the figures are limited by the machine, or by one api process."""


def show_bootstrap(console: Console, cases: Sequence[BootstrapResult]) -> None:
    """Print what was measured."""
    names = ("wanted\na second", "answered\na second", *PARTS, "api\ncores", "p50\nms", "p99", "max", "not 200")
    table = figures_table("CPU of a bootstrap in microseconds: median (least-most)", (), names)
    for case in cases:
        table.add_row(
            f"{case.asked:g}",
            f"{case.rate:.0f}",
            *(cell(case.us[part]) for part in PARTS),
            f"{case.cores['api']:.2f}",
            *(f"{value:.1f}" for value in (case.ms.p50, case.ms.p99, case.ms.most)),
            ", ".join(f"{count} {why}" for why, count in case.refused.items()) or "0",
        )
    console.print(table)
    console.print(
        "A connection and a known device for each request, one api process, a wait counts from when the request was"
        " due. What plays the devices shares the cores with the api."
    )
    for case in cases:
        if case.rate < _ENOUGH * case.asked:
            console.print(
                f"{case.asked:g} a second: only {case.rate:.0f} were answered, with {case.cores['api']:.2f} of a core"
                " for the api.",
                style="yellow",
            )
        if case.asked == MARK_RATE:
            verdict = "met" if _is_met(case) else "MISSED"
            mark = f"mark: all with 200, below {MARK_MS:g}"
            console.print(f"{verdict}: p99 {case.ms.p99:.0f} ms at {case.asked:g} a second ({mark})")


def _is_met(case: BootstrapResult) -> bool:
    return case.ms.p99 < MARK_MS and not case.refused and case.rate >= _ENOUGH * case.asked
