"""Print findings, as a table or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fleet.ground.terminal import cell
from fleet.operations.doctor.finding import Finding, Verdict, exit_code

_SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "skipped": ("skipped", "dim"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
    "wrong": ("WRONG", "bold red"),
}
_WIDTH = 160
"""Columns if the output is not a terminal."""


def write_json(findings: Sequence[Finding]) -> str:
    """Return one JSON object: `exit`, and the `findings` with the fields of `Finding`."""
    message = {"exit": exit_code(findings), "findings": [asdict(finding) for finding in findings]}
    return json.dumps(message, ensure_ascii=False, indent=2)


def show(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a table of all findings, then the advice for each problem and warning."""
    shown = console or Console(width=None if Console().is_terminal else _WIDTH)
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
    shown.print(f"{bad} problems, {warned} warnings. All checks are explained in docs/doctor.md.")
