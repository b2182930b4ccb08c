"""Print findings, as a table or as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fleet.core.finding import Finding, Verdict, exit_code
from fleet.ground.terminal import cell, open_console, plural
from fleet.operations.json_output import print_json

_SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "skipped": ("skipped", "dim"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
    "wrong": ("WRONG", "bold red"),
}


def show_json(findings: Sequence[Finding]) -> None:
    """Print one JSON object: `exit`, and the `findings` with the fields of `Finding`."""
    print_json("findings", map(asdict, findings), exit=exit_code(findings))


def show(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a table of all findings, then the advice for each problem and warning."""
    shown = console or open_console()
    table = Table("", "check", "what was found", box=None, pad_edge=False)
    for finding in findings:
        sign, style = _SIGNS[finding.verdict]
        table.add_row(Text(sign, style), finding.check, cell(finding.message))
    shown.print(table)
    todo = [finding for finding in findings if finding.verdict in ("warning", "problem", "wrong")]
    for finding in todo:
        sign, style = _SIGNS[finding.verdict]
        shown.print()
        shown.print(Text(f"{sign} {finding.check}", style), cell(finding.message))
        shown.print(cell(f"  {finding.advice}."))
    shown.print()
    bad = sum(finding.verdict in ("problem", "wrong") for finding in findings)
    warned = len(todo) - bad
    shown.print(f"{plural(bad, 'problem')}, {plural(warned, 'warning')}. docs/doctor.md explains all checks.")
