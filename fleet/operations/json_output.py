"""What commands print with `--json`, in one shape for all.

It imports no library for tables: the roles start with the same program, and would hold it in memory.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from pydantic import BaseModel

AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help='Print one JSON object: {"NAME": [{…}, …]}, where NAME is what is listed or changed, such as "devices". '
        "Times are ISO 8601 in UTC; what is unknown is null.",
    ),
]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Entry = BaseModel | Mapping[str, Any]


def print_json(name: str, entries: Iterable[Entry], **more: object) -> None:
    """Print one JSON object; it is ASCII, because texts of devices may hold characters that change a screen."""
    typer.echo(json.dumps({**more, name: [_fields(one) for one in entries]}, indent=2, default=_time))


def print_result(name: str, entries: Iterable[Entry], text: str, *, as_json: bool) -> None:
    """Print what a command did: a text for people, or JSON.

    Args:
        name: What was changed, in plural.
        entries: What control answered, or what the command itself knows of each.
        text: Of one line or several.
        as_json: The option of the command.
    """
    if as_json:
        print_json(name, entries)
    else:
        typer.echo(text)


def _fields(entry: Entry) -> Mapping[str, Any]:
    return entry.model_dump(mode="json") if isinstance(entry, BaseModel) else entry


def _time(value: datetime) -> str:
    return value.isoformat(timespec="seconds").replace("+00:00", "Z")
