"""Figures of the benchmark of interruptions, for people."""

from collections.abc import Sequence

from rich.console import Console

from fleet.workbench.bench.figures import Percentiles
from fleet.workbench.bench.table_cells import figures_table
from tests.benchmarks.interruptions import (
    GO_ON_SECONDS,
    SENT_SECONDS,
    SILENT_SECONDS,
    InterruptionFigures,
    Passed,
)


def show_interruptions(console: Console, found: InterruptionFigures) -> None:
    """Print what was measured."""
    title = f"The answer goes on, within {GO_ON_SECONDS:g} s"
    table = figures_table(title, ("over the answer",), ("went on", "silence, ms\np50", "most"))
    for kind in ("noise", "backchannel"):
        those = [one for one in found.passed if one.kind == kind]
        gaps = Percentiles.of([one.gap * 1000 for one in those])
        table.add_row(kind, f"{_count(those)} of {len(those)}", f"{gaps.p50:.0f}", f"{gaps.most:.0f}")
    console.print(table)
    lost, words = sum(one.lost for one in found.answers), sum(one.words for one in found.answers)
    missing = sum(one.missing_packets for one in found.answers)
    console.print(
        f"Recognition lost {lost} of {words} words of {len(found.answers)} disturbed answers; {missing} packets of them"
        " were not played."
    )
    table = figures_table("The answer is interrupted: from the first sound, in ms", (), ("", "p50", "most", "within"))
    for name, limit, values in (
        ("last packet", SENT_SECONDS, [one.sent for one in found.interrupted]),
        ("device silent", SILENT_SECONDS, [one.silent for one in found.interrupted]),
    ):
        all_of = Percentiles.of([seconds * 1000 for seconds in values])
        within = sum(seconds <= limit for seconds in values)
        cells = (f"{all_of.p50:.0f}", f"{all_of.most:.0f}", f"{within} of {len(values)} in {limit * 1000:.0f} ms")
        table.add_row(name, *cells)
    console.print(table)
    answered = sum(one.answered for one in found.interrupted)
    console.print(f"{answered} of {len(found.interrupted)} interruptions were answered. Verdicts: {found.verdicts}")
    for passed in found.passed:
        if not passed.went_on:
            console.print(f"did not go on: {passed.kind} {passed.name}, silence of {passed.gap * 1000:.0f} ms")
    for violation in found.violations:
        console.print(f"breach of a rule of the firmware: {violation}", style="yellow")


def _count(passed: Sequence[Passed]) -> int:
    return sum(one.went_on for one in passed)
