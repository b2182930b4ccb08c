"""The output of the demo: a timeline, and a line with the current activity."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

from fleet.ground.errors import writing
from fleet.ground.terminal import cell, open_console
from fleet.workbench.demo.stages import ASR, END, OUTSIDE, SENTENCE, START, TTS
from fleet.workbench.demo.timeline import Actor, Row, ms

_STYLES = {
    Actor.USER: "bold cyan",
    Actor.DEVICE: "yellow",
    Actor.SERVER: "green",
    Actor.TOOL: "magenta",
    Actor.DEMO: "bold",
    Actor.PROBLEM: "bold red",
}
_COLOURS = {END: "blue", ASR: "cyan", SENTENCE: "magenta", TTS: "green", START: "yellow", OUTSIDE: "white"}
_CELLS_A_SECOND = 18.0
_MARGIN = " " * 16
_OUTCOME = " heard after {}"
_FETCHED_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_PLAIN_WIDTH = 120
"""Width of output that is not a terminal; 80 columns would wrap most lines."""


def make_console(*, record: bool = False) -> Console:
    """Return the console; `record` keeps all output for a picture, with colours even without a terminal."""
    if record:
        return Console(record=True, highlight=False, force_terminal=True, width=_PLAIN_WIDTH)
    return open_console(_PLAIN_WIDTH)


def save_picture(console: Console, path: Path) -> None:
    """Write the output of a recording console as SVG, with the viewer's monospace font: it fetches no font.

    Raises:
        ConfigError: The file cannot be written.
    """
    svg = _FETCHED_FONT.sub("", console.export_svg(title="scripts/demo"))
    with writing(path):
        path.write_text(svg, encoding="utf-8")


class Screen:
    """Writes rows with the seconds since the start of the demo.

    Args:
        console: Receives the output.
        spinner: Whether to show the current activity with a spinner; do not use it for a picture.
    """

    def __init__(self, console: Console, *, spinner: bool = True) -> None:
        self.console = console
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._status: Status | None = Status("", console=console) if spinner and console.is_terminal else None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the spinner during the block."""
        if self._status is None:
            yield
            return
        with self._status:
            yield

    def show_progress(self, what: str) -> None:
        """Show the current activity."""
        if self._status:
            self._status.update(cell(f"{what} …", "dim"))

    def title(self, text: str) -> None:
        self.console.print()
        if self.console.is_terminal:
            self.console.rule(Text(text, style="bold"), align="left", style="dim")
        else:
            self.console.print(Text(text))

    def show_row(self, row: Row) -> None:
        """Write a row below the others."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(justify="right", width=7, no_wrap=True)
        grid.add_column(width=7, no_wrap=True)
        grid.add_column(ratio=1)
        text = cell(row.text, "red" if row.actor is Actor.PROBLEM else "")
        if row.note:
            text.append_text(cell(f"  {row.note}", "dim"))
        grid.add_row(Text(f"{self._clock() - self._began:.2f}", style="dim"), Text(row.actor, _STYLES[row.actor]), text)
        self.console.print(grid)

    def show_stages(self, stages: Mapping[str, float]) -> None:
        """Draw a bar with the stages of the time until the answer was heard."""
        total = sum(stages.values())
        room = self.console.width - len(_MARGIN) - len(_OUTCOME.format(ms(total)))
        second = min(_CELLS_A_SECOND, room / total if total else 0)
        bar, legend = Text(_MARGIN), Text()
        for name, seconds in stages.items():
            bar.append("━" * round(seconds * second * self.console.is_terminal), style=_COLOURS[name])
            legend.append(f"{name} {ms(seconds)}  ", style=_COLOURS[name])
        bar.append(_OUTCOME.format(ms(total)), style="bold")
        self.console.print(bar)
        self.console.print(Padding(legend, (0, 0, 0, len(_MARGIN))))
