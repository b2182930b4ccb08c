"""What the demo shows: a timeline that grows, and what is being done right now."""

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

from fleet.ground.errors import ConfigError
from fleet.ground.terminal import cell
from fleet.workbench.demo.stages import ASR, END, SENTENCE, START, TTS, WAY
from fleet.workbench.demo.timeline import Row, Who, ms

_STYLES = {
    Who.USER: "bold cyan",
    Who.DEVICE: "yellow",
    Who.SERVER: "green",
    Who.TOOL: "magenta",
    Who.DEMO: "bold",
    Who.PROBLEM: "bold red",
}
_COLOURS = {END: "blue", ASR: "cyan", SENTENCE: "magenta", TTS: "green", START: "yellow", WAY: "white"}
_CELLS_A_SECOND = 18.0
_MARGIN = " " * 16
_OUTCOME = " heard after {}"
_FETCHED_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_PLAIN_WIDTH = 120
"""Where the output is no terminal, its width is unknown; 80 would fold most lines."""


def make_console(*, record: bool = False) -> Console:
    """Return the console; `record` keeps everything for a picture, which has colours wherever it is made."""
    if record:
        return Console(record=True, highlight=False, force_terminal=True, width=_PLAIN_WIDTH)
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def save_picture(console: Console, path: Path) -> None:
    """Write what a recording console has shown as SVG, in whatever typewriter font there is: no fonts are fetched.

    Raises:
        ConfigError: The file cannot be written.
    """
    svg = _FETCHED_FONT.sub("", console.export_svg(title="scripts/demo"))
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


class Screen:
    """Writes rows with the seconds since the demo began.

    Args:
        console: Where to.
        spinner: Whether to show what is being done in a line that moves; it would spoil a picture.
    """

    def __init__(self, console: Console, *, spinner: bool = True) -> None:
        self.console = console
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._status: Status | None = Status("", console=console) if spinner and console.is_terminal else None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the moving line during the block."""
        if self._status is None:
            yield
            return
        with self._status:
            yield

    def doing(self, what: str) -> None:
        """Say what is being done now."""
        if self._status:
            self._status.update(cell(f"{what} …", "dim"))

    def title(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text, style="bold"), align="left", style="dim")

    def show(self, row: Row) -> None:
        """Write a row below the others."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(justify="right", width=7, no_wrap=True)
        grid.add_column(width=7, no_wrap=True)
        grid.add_column(ratio=1)
        text = cell(row.text, "red" if row.who is Who.PROBLEM else "")
        if row.note:
            text.append_text(cell(f"  {row.note}", "dim"))
        grid.add_row(Text(f"{self._clock() - self._began:.2f}", style="dim"), Text(row.who, _STYLES[row.who]), text)
        self.console.print(grid)

    def show_parts(self, cut: Mapping[str, float]) -> None:
        """Draw how the time until the answer was heard was spent."""
        total = sum(cut.values())
        room = self.console.width - len(_MARGIN) - len(_OUTCOME.format(ms(total)))
        second = min(_CELLS_A_SECOND, room / total if total else 0)
        bar, legend = Text(_MARGIN), Text()
        for name, seconds in cut.items():
            bar.append("━" * round(seconds * second), style=_COLOURS[name])
            legend.append(f"{name} {ms(seconds)}  ", style=_COLOURS[name])
        bar.append(_OUTCOME.format(ms(total)), style="bold")
        self.console.print(bar)
        self.console.print(Padding(legend, (0, 0, 0, len(_MARGIN))))
