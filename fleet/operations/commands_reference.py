"""`fleet commands`: every command with its options, also as the reference that the documents hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import typer
from typer.core import TyperCommand, TyperGroup

Format = Literal["text", "markdown"]

_PROGRAM = "fleet"
_INTRODUCTION = """\
# Commands

Made from the code by `fleet commands --format markdown`; do not edit. `fleet … --help` shows the same of one
command. What all of them obey: [settings](settings.md). Exit codes: 0 done; 1 it failed, or something was found; 2 a
setting or the command line is wrong.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that does something itself."""

    path: str
    meaning: str
    options: tuple[tuple[str, str], ...]
    """How each is written, and what it does."""


def commands(
    context: typer.Context,
    form: Annotated[
        Format, typer.Option("--format", help="`text`: for people; `markdown`: docs/reference/commands.md.")
    ] = "text",
) -> None:
    """Show every command with its options."""
    found = tuple(find_commands(context.find_root().command))
    typer.echo(write_commands(found) if form == "markdown" else _plain(found), nl=False)


def find_commands(command: object, path: str = _PROGRAM) -> Iterator[Command]:
    """Give a command, or those below it, in the order of the help."""
    if isinstance(command, TyperGroup):
        for name, one in command.commands.items():
            yield from find_commands(one, f"{path} {name}")
    elif isinstance(command, TyperCommand):
        context = typer.Context(command)
        records = (param.get_help_record(context) for param in command.params)
        options = tuple((name, _joined(text)) for name, text in filter(None, records))
        yield Command(path, _joined(command.help or ""), options)


def write_commands(found: tuple[Command, ...]) -> str:
    """Return the document."""
    # By name, as the order of the help depends on what was loaded first.
    return "\n".join([_INTRODUCTION, *(_section(one) for one in sorted(found, key=lambda one: one.path))])


def _section(command: Command) -> str:
    lines = [f"## {command.path}\n\n{command.meaning}\n"]
    if command.options:
        lines.append("| option | meaning |\n|---|---|")
        lines += [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in command.options]
        lines.append("")
    return "\n".join(lines)


def _plain(found: tuple[Command, ...]) -> str:
    lines: list[str] = []
    for command in found:
        lines += [command.path, f"    {command.meaning}"]
        lines += [f"      {name}  {text}" for name, text in command.options]
    return "".join(f"{line}\n" for line in lines)


def _joined(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
