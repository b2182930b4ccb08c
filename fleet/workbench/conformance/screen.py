"""What a person sees of a run: a progress display, and a table at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fleet.ground.terminal import print_table, visible
from fleet.workbench.conformance.results import Outcome, Result, Results
from fleet.workbench.conformance.run import Observer, Task

_COLOURS: dict[Outcome, str] = {"passed": "green", "failed": "bold red", "skipped": "yellow"}
_SIGNS: dict[Outcome, str] = {"passed": "✓", "failed": "✗", "skipped": "–"}


@contextmanager
def progress(console: Console, total: int) -> Iterator[Observer]:
    """Show how far a run of `total` tasks is; a failure is shown at once."""
    names = TextColumn("{task.description}")
    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), names)
    running: list[str] = []
    with Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("", total=total)

        def name(id_: str, profile: str) -> str:
            return f"{id_}·{profile}"

        def begun(task: Task) -> None:
            running.append(name(task.check.id, task.profile.name))
            bar.update(shown, description=" ".join(running))

        def ended(result: Result) -> None:
            running.remove(name(result.id, result.profile))
            bar.update(shown, advance=1, description=" ".join(running))
            if result.outcome == "failed":
                console.print(_line(result))

        yield Observer(begun, ended)


def show(console: Console, results: Results) -> None:
    """Print the table, what failed, and the sum."""
    profiles = list(dict.fromkeys(result.profile for result in results.results))
    table = Table(title=f"Conformance of {escape(visible(results.server))}", title_justify="left", header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("statement")
    for profile in profiles:
        table.add_column(profile, justify="center")
    table.add_column("seen", overflow="fold")
    for id_ in dict.fromkeys(result.id for result in results.results):
        rows = [result for result in results.results if result.id == id_]
        cells = [_cell([row for row in rows if row.profile == profile]) for profile in profiles]
        worst = min(rows, key=lambda row: ("failed", "skipped", "passed").index(row.outcome))
        table.add_row(id_, escape(visible(rows[0].title)), *cells, escape(visible(worst.seen)))
    print_table(console, table)
    for result in results.results:
        if result.outcome == "failed":
            console.print(_line(result))
    counts = results.counts()
    console.print(" · ".join(f"[{_COLOURS[name]}]{count} {name}[/]" for name, count in counts.items()))


def _cell(rows: Sequence[Result]) -> str:
    if not rows:
        return ""
    failed = sum(row.outcome == "failed" for row in rows)
    outcome: Outcome = "failed" if failed else rows[0].outcome
    times = f" {failed}/{len(rows)}" if failed and len(rows) > 1 else ""
    return f"[{_COLOURS[outcome]}]{_SIGNS[outcome]}{times}[/]"


def _line(result: Result) -> str:
    colour = _COLOURS[result.outcome]
    return f"[{colour}]{result.id} {result.profile} {result.outcome}[/]: {escape(visible(result.seen))}"
