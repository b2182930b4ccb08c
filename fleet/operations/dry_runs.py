"""Dry runs as lines of text."""

from collections.abc import Iterable
from typing import Annotated

import typer

from fleet.ground.terminal import plural, visible
from fleet.operations.json_output import print_result
from fleet.wire.control.agents import AgentPreview, AssignmentPreview
from fleet.wire.control.jobs import SkipCount

Most = Annotated[int, typer.Option(min=0, help="Refuse it if more devices would get another agent.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which devices would get another agent.")]
MostUsers = Annotated[int, typer.Option(min=0, help="Refuse it if more devices have the agent.")]
UsersDryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which devices have the agent.")]


def skip_lines(found: Iterable[SkipCount], verb: str = "skipped") -> list[str]:
    """Return how many devices are left out, and why, one line for each reason."""
    return [f"{plural(one.devices, 'device')} {verb}: {one.reason}" for one in found]


def print_change(found: AssignmentPreview, *, as_json: bool) -> None:
    """Print which devices a change of an assignment or a group would give another agent."""
    if found.counted:
        lines = [f"{plural(found.changing, 'device')} of {found.devices} would get another agent{_talking(found)}"]
    else:
        lines = [_uncounted(found, "would get another agent")]
    lines += [*skip_lines(found.skipped, "keep theirs"), *_listed(found)]
    print_result("previews", [found], "\n".join(lines), as_json=as_json)


def print_users(found: AgentPreview, *, as_json: bool) -> None:
    """Print which devices have an agent, and what they get if it is deleted."""
    lines = [f"{plural(found.changing, 'device')} would change{_talking(found)}"]
    if not found.counted:
        lines = [_uncounted(found, "would change")]
    lines += [f"{plural(one.devices, 'device')}: {one.reason}" for one in found.given]
    if found.late:
        lines.append(f"{plural(found.late, 'device')} still being given this agent, or another one in its place")
    lines += [
        f"{plural(one.devices, 'device')} would get {visible(one.agent) or 'the settings of the server'}"
        for one in found.instead
    ]
    print_result("previews", [found], "\n".join([*lines, *_listed(found)]), as_json=as_json)


def _talking(found: AssignmentPreview) -> str:
    return f", {found.talking} of them with their next turn in a conversation" if found.talking else ""


def _uncounted(found: AssignmentPreview, what: str) -> str:
    return f"not counted, as a query takes too long: at most {plural(found.changing, 'device')} {what}"


def _listed(found: AssignmentPreview) -> list[str]:
    return [f"fleet devices search '{visible(found.query)}'"] if found.query and found.changing else []
