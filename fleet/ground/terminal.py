"""Output for people and pipes, and untrusted text in it.

Devices, models and servers may send control characters to an operator's screen.
"""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

ITEM: Final = "- "
"""How an item of a list begins, in the help of a command."""
_PIPE_WIDTH = 10_000


def visible(text: str) -> str:
    """Return a text with control and invisible characters escaped: `\\x1b`, `\\u202e`.

    Line ends are escaped too, so that the text cannot fake a line of output.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cell(text: str, style: str = "") -> Text:
    """Return a text for rich without markup; rich would read a plain string as markup."""
    return Text(visible(text), style)


def plural(count: float, one: str, many: str = "") -> str:
    """Return a count with its noun; `many` is for nouns whose plural does not just end in s."""
    return f"{count:.10g} {one if count == 1 else many or f'{one}s'}"


def itemised(title: str, items: Iterable[str]) -> str:
    """Return a title and a list for the help of a command, each item a paragraph: a terminal joins single lines."""
    return "\n\n".join([title, *(f"{ITEM}{item}" for item in items)])


def open_console(width: int = _PIPE_WIDTH) -> Console:
    """Return the console of the standard output; `width` is for pipes and files, where nothing must be wrapped."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def print_table(console: Console, table: Table, *, lines: bool = True) -> None:
    """Print a table; outside a terminal without lines around its cells."""
    if not (lines and console.is_terminal):
        table.box, table.pad_edge = None, False
    console.print(table)
