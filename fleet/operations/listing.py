"""What commands that list things print: a table, or with `--json` one JSON object."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.table import Column, Table

from fleet.ground.terminal import cell, open_console, print_table
from fleet.operations.json_output import print_json

_ANY_WIDTH = 10_000
Value = str | int | datetime | None


def print_list(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Value]], *, as_json: bool, heading: bool = True
) -> None:
    """Print rows as a table, or as JSON with the columns as keys.

    Args:
        name: What is listed, in plural.
        columns: Lower case, words joined by `_`.
        rows: One value for each column.
        as_json: The option of the command.
        heading: Whether the table has lines and a heading.
    """
    if as_json:
        print_json(name, [dict(zip(columns, row, strict=True)) for row in rows])
        return
    table = Table(*(Column(column.replace("_", " "), overflow="fold") for column in columns), show_header=heading)
    for row in rows:
        table.add_row(*(cell(_text(value)) for value in row))
    console = open_console()
    needed = console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum
    too_wide = needed > console.width
    if too_wide:
        # The terminal breaks the lines: narrower columns would break an address into pieces, one below the other.
        console.width = needed
    print_table(console, table, lines=heading and not too_wide)


def _text(value: Value) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else str(value or "")
