"""The result of a run for people."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tests.chaos.history import Turn
from tests.chaos.house import Moment
from tests.chaos.run import Outcome

MOST_SHOWN = 40


def show(outcome: Outcome, console: Console) -> None:
    """Print everything that a person wants to know of a run."""
    console.print(_recoveries(outcome.faults, outcome.turns))
    ends: Counter[str] = Counter(turn.outcome for turn in outcome.turns)
    console.print("turns:", _counts(ends), f"of {len(outcome.turns)} in {outcome.seconds:.0f} s")
    console.print("calls:", _counts(Counter(str(call.states[-1]) for call in outcome.calls)))
    console.print(f"executions: {len(outcome.executions)}")
    resumed = sum(turn.resumed is not None for turn in outcome.turns)
    console.print(f"users who went on after a pause: {resumed}, prepared answers withdrawn: {outcome.withdrawn}")
    times = sorted(turn.ended - turn.said for turn in outcome.turns if turn.outcome == "answered")
    if times:
        console.print(f"end of speech to end of answer: median {statistics.median(times):.1f} s, max {times[-1]:.1f} s")
    for name, drains in outcome.drains.items():
        console.print(f"{name} ended after SIGTERM within", ", ".join(f"{one:.1f}" for one in drains), "s")
    if outcome.missed:
        console.print(
            f"{len(outcome.missed)} faults waited in vain for their line:",
            ", ".join(sorted({fault.point for fault in outcome.missed})),
        )
    for line, count in outcome.crashes.items():
        console.print(f"[yellow]{count} x {line}", markup=True, highlight=False)
    _show_violations(outcome, console)


def show_plan(outcome_plan: Sequence[object], seed: int, console: Console) -> None:
    """Print the faults of a run before it begins."""
    console.print(f"seed {seed}, {len(outcome_plan)} faults:")
    for fault in outcome_plan:
        console.print(f"  {fault}", highlight=False)


def describe(outcome: Outcome) -> str:
    """Return what a failed test is to say."""
    lines = [f"{len(outcome.violations)} violations; repeat with scripts/chaos --seed {outcome.options.seed}"]
    lines += [str(one) for one in outcome.violations[:MOST_SHOWN]]
    return "\n".join([*lines, *(str(fault.what) for fault in outcome.faults), f"logs: {outcome.options.out}"])


def _show_violations(outcome: Outcome, console: Console) -> None:
    if not outcome.violations:
        console.print("[green]no violation")
        return
    rules = Counter(one.rule for one in outcome.violations)
    console.print(f"[red]{len(outcome.violations)} violations:[/red] {_counts(rules)}")
    for one in outcome.violations[:MOST_SHOWN]:
        console.print(f"  {one}", highlight=False, markup=False)


def _recoveries(faults: Sequence[Moment], turns: Sequence[Turn]) -> Table:
    """Return a table: for each kind of fault, how long devices waited for their next answer."""
    table = Table("fault", "times", "median device s", "slowest device s", title="until the next answer after a fault")
    found: dict[str, list[list[float]]] = defaultdict(list)
    for fault in faults:
        if times := recoveries(fault.began, turns):
            found[fault.kind].append(times)
    for kind, many in sorted(found.items()):
        everything = [one for times in many for one in times]
        table.add_row(kind, str(len(many)), f"{statistics.median(everything):.1f}", f"{max(everything):.1f}")
    return table


def recoveries(since: float, turns: Sequence[Turn]) -> list[float]:
    """Return for each device that talked then how many seconds later it had an answer."""
    first: dict[str, float] = {}
    for turn in turns:
        if turn.outcome == "answered" and turn.ended > since:
            first[turn.device] = min(first.get(turn.device, turn.ended), turn.ended)
    return [at - since for at in first.values()]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda one: -one[1])) or "none"
