"""The summary of the demo: transcripts, times and the verdict."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fleet.ground.terminal import cell, plural, print_table
from fleet.workbench.demo.results import SceneResult, TurnResult
from fleet.workbench.demo.stages import HEARD, MEANINGS, NAMES, Stages, medians
from fleet.workbench.demo.verdict import Check

_MB = 1_000_000


def show_summary(console: Console, scenes: Sequence[SceneResult], checks: Sequence[Check]) -> None:
    """Print the tables and the verdict."""
    answers = [answer for scene in scenes for answer in scene.answers]
    if answers:
        print_table(console, transcripts_table(answers))
        print_table(console, times_table(answers))
        console.print(Text("\n".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items()), style="dim"))
        if filled := sum(answer.filled for answer in answers):
            note = f"{plural(filled, 'answer')} came after a filler: what was heard first was not the answer."
            console.print(Text(note, style="yellow"))
    console.print(verdict_lines(checks))


def transcripts_table(answers: Sequence[TurnResult]) -> Table:
    """Return a table of what was said and what was recognised."""
    table = Table(title="What was said", title_justify="left", expand=True)
    for name in ("the user said", "the server understood", "it answered", "heard in the device's audio"):
        table.add_column(name, ratio=1)
    for answer in answers:
        table.add_row(*map(cell, (answer.line.text, answer.understood, answer.reply, answer.heard)))
    return table


def times_table(answers: Sequence[TurnResult]) -> Table:
    """Return a table of the duration of each stage in milliseconds, and by which clock."""
    table = Table(
        title="How long it took, in ms: “heard” on the device's clock, all else on the server's",
        title_justify="left",
        show_footer=True,
    )
    typical = medians([answer.stages for answer in answers])
    table.add_column("", footer="median")
    for name, footer in zip(NAMES, _cells(typical), strict=True):
        table.add_column(name, justify="right", footer=footer, style="bold" if name == HEARD else "")
    for answer in answers:
        table.add_row(answer.line.text, *_cells(answer.stages))
    return table


def verdict_lines(checks: Sequence[Check]) -> RenderableType:
    """Return one line per check, with a tick or a cross."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column()
    for check in checks:
        mark = Text("✔", style="bold green") if check.ok else Text("✘", style="bold red")
        line = cell(check.what)
        line.append_text(cell(f"  {check.seen}", "dim" if check.ok else "red"))
        grid.add_row(mark, line)
    return Group(Text(), grid, Text())


def files_table(memory: int, wavs: Sequence[Path], log: Path) -> RenderableType:
    """Return a table of the files of answers and log, and of the server's memory in bytes (0: not known)."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    if memory:
        grid.add_row("memory", f"{memory / _MB:.0f} MB: the server with everything loaded")
    grid.add_row("answers", " ".join(str(path) for path in wavs))
    grid.add_row("log", str(log))
    return grid


def _cells(stages: Stages) -> list[str]:
    return [f"{stages[name] * 1000:.0f}" if name in stages else "–" for name in NAMES]
