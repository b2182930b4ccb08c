"""Figures of a run, which `tests/containers/run` shows at its end."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.history import Turn
from tests.chaos.report import recoveries
from tests.chaos.run import Outcome


def note(what: str, figures: str) -> None:
    """Add a line to the table of the run, or to standard output without one."""
    line = f"| {what} | {figures} |"
    print(line)
    if file := os.environ.get("CONTAINER_NOTES"):
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(f"{line}\n")


def report(outcome: Outcome) -> None:
    """Note what came of each fault of a run, and of all its turns."""
    for fault in outcome.faults:
        waited = recoveries(fault.began, outcome.turns)
        hit = [turn for turn in outcome.turns if _meets(turn, fault.began, fault.ended or fault.began)]
        note(
            f"{fault.kind}", f"turns meanwhile: {_ends(hit)}; next answer after at most {max(waited, default=0):.1f} s"
        )
    drains = ", ".join(f"{name} {max(times):.1f} s" for name, times in outcome.drains.items())
    note("time from `docker stop` to the end", drains or "none")
    many = f"{len(outcome.turns)} turns in {outcome.seconds:.0f} s"
    note("all turns", f"{many}: {_ends(outcome.turns)}; {len(outcome.violations)} violations")


def _meets(turn: Turn, began: float, ended: float) -> bool:
    return turn.begun < ended and turn.ended > began


def _ends(turns: Sequence[Turn]) -> str:
    return ", ".join(f"{count} {end}" for end, count in Counter(turn.outcome for turn in turns).most_common()) or "none"
