"""`fleet settings`: shows every setting with its current value, or the reference as Markdown."""

import textwrap
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from fleet.ground import runtime
from fleet.ground.settings import Settings
from fleet.ground.settings.reference import SettingEntry, default_of, groups, is_changed
from fleet.ground.settings.wording import shown
from fleet.ground.terminal import open_console
from fleet.operations.connect import load_or_exit
from fleet.operations.json_output import AsJson, print_json
from fleet.operations.settings_reference import write_reference

Format = Literal["text", "markdown"]
RoleName = Literal["up", "worker", "edge", "api", "gateway", "front", "control"]

_WIDEST = 110
_INDENT = "    "


def settings(
    words: Annotated[list[str] | None, typer.Argument(help="Only settings that contain all of these words.")] = None,
    role: Annotated[RoleName | None, typer.Option(help="Only settings that this role reads.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that differ from their default.")] = False,
    form: Annotated[
        Format, typer.Option("--format", help="`text`: with current values; `markdown`: docs/reference/settings.md.")
    ] = "text",
    as_json: AsJson = False,
) -> None:
    """Show settings: variable, value, allowed values, description. Secrets are masked.

    In text format each setting begins with a line `NAME = value`, which is easy to search.
    """
    if form == "markdown":
        typer.echo(write_reference(), nl=False)
        return
    loaded = load_or_exit()
    wanted = [word.lower() for word in words or ()]
    found: dict[str, list[SettingEntry]] = {}
    for group in groups():
        entries = [one for one in group.entries if _matches(one, wanted, role)]
        if entries := [one for one in entries if not changed or is_changed(one.name, loaded)]:
            found[group.title] = entries
    if not found and not (changed and not wanted):
        typer.echo("fleet: no such setting", err=True)
        raise typer.Exit(runtime.EXIT_FAILED)
    if as_json:
        print_json("settings", (_fields(entry, loaded) for entries in found.values() for entry in entries))
        return
    console = open_console()
    for number, (title, entries) in enumerate(found.items()):
        console.print(Text(f"{chr(10) if number else ''}{title}", style="bold underline"))
        _show(console, entries, loaded)
    if not found:
        typer.echo("Every setting has its default.")


def _matches(entry: SettingEntry, words: list[str], role: RoleName | None) -> bool:
    if role and (entry.roles_only if role == "up" else role not in entry.roles):
        return False
    text = f"{entry.variable} {entry.also} {entry.name} {entry.meaning}".lower()
    return all(word in text for word in words)


def _show(console: Console, entries: list[SettingEntry], loaded: Settings) -> None:
    for entry in entries:
        console.print(Text.assemble((entry.variable, "bold cyan"), " = ", *_value(entry, loaded)), soft_wrap=True)
        for text in _description(entry):
            # Do not wrap lines for a pipe or a file, so that searches find whole sentences.
            width = min(console.width, _WIDEST) if console.is_terminal else len(text) + len(_INDENT)
            typer.echo(
                textwrap.fill(
                    text,
                    width,
                    initial_indent=_INDENT,
                    subsequent_indent=_INDENT,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )


def _fields(entry: SettingEntry, loaded: Settings) -> dict[str, Any]:
    return {
        "variable": entry.variable,
        "value": shown(getattr(loaded, entry.name)) or None,
        "default": entry.default or shown(default_of(entry.name)) or None,
        "changed": is_changed(entry.name, loaded),
        "allowed": entry.allowed,
        "read_by": entry.roles,
        "meaning": entry.meaning,
    }


def _value(entry: SettingEntry, loaded: Settings) -> Iterator[str | tuple[str, str]]:
    value = shown(getattr(loaded, entry.name))
    if is_changed(entry.name, loaded):
        yield value, "bold green"
        yield f"  (default {entry.default or shown(default_of(entry.name)) or 'not set'})"
    elif value:
        yield value
    else:
        yield "not set", "dim"


def _description(entry: SettingEntry) -> Iterator[str]:
    yield entry.meaning.replace("`", "")
    parts = [f"Allowed: {entry.allowed}."]
    if entry.unset:
        parts.append(f"Not set: {entry.unset}.")
    if entry.also:
        parts.append(f"Also set by {entry.also}.")
    if entry.equal:
        parts.append("Equal in all processes.")
    yield " ".join([*parts, f"Read by {', '.join(entry.roles) or 'commands'}."]).replace("`", "")
