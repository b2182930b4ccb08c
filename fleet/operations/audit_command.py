"""`fleet audit`: who changed what, over control."""

import json
import sys
from typing import Annotated

import typer

from fleet.client import access
from fleet.ground.settings import Settings
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson, print_json
from fleet.operations.listing import print_list
from fleet.wire.control.audit import AuditRecord


@operation
async def audit(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    actor: Annotated[str, typer.Option(help="Only of this actor.")] = "",
    action: Annotated[str, typer.Option(help="Only this action, such as agent.publish.")] = "",
    object: Annotated[str, typer.Option(help="Only about this, such as device/02:00:00:00:00:01.")] = "",
    since: Annotated[str, typer.Option(help="From this time on, such as 2026-11-01T00:00:00Z.")] = "",
    until: Annotated[str, typer.Option(help="Before this time.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Entries at most.")] = 50,
    export: Annotated[bool, typer.Option("--export", help="Write all that match as lines of JSON.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the audit log, the newest first."""
    wanted = {"actor": actor, "action": action, "object": object, "since": since, "until": until}
    found: list[AuditRecord] = []
    async with open_control(settings) as control:
        if export:
            given = {name: value for name, value in wanted.items() if value}
            async for piece in control.download("/audit:export", given):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        async for page in control.pages(access.audit(**wanted, limit=min(limit, 500))):
            found += page.items[: limit - len(found)]
            if len(found) == limit:
                break
    if as_json:
        print_json("audit", found)
    else:
        rows = [(one.at, one.actor, one.source, one.action, one.object, _changed(one)) for one in found]
        print_list("audit", ("at", "actor", "source", "action", "object", "changed"), rows, as_json=False)


def _changed(one: AuditRecord) -> str:
    pair = [json.dumps(part) for part in (one.before, one.after) if part]
    return " -> ".join(pair)
