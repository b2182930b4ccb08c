"""`fleet events` and `fleet usage`: what happened, over control."""

from functools import partial
from typing import Annotated, Any

import typer

from fleet.client import events as calls
from fleet.client.call import ClientError
from fleet.client.client import AsyncFleetClient
from fleet.ground.settings import Settings
from fleet.ground.tasks import Backoff
from fleet.operations.connect import operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson, AsJsonLines
from fleet.operations.listing import print_list

Kinds = Annotated[str, typer.Option(help="Kinds or families, separated by commas, such as turn,tool.called.")]
Filter = Annotated[str, typer.Option("--filter", help="A query for devices, such as tag.site=berlin.")]
Device = Annotated[str, typer.Option(help="Only of this MAC.")]
_SUMS = ("sessions", "turns", "failed", "interrupted", "tool_calls", "speech_ms", "spoken_ms")
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")


@operation
async def events(
    settings: Settings,
    follow: Annotated[bool, typer.Option("--follow", help="Show events as they happen, until interrupted.")] = False,
    kinds: Kinds = "",
    query: Filter = "",
    device: Device = "",
    after: Annotated[int | None, typer.Option(min=0, help="Only events above this id.")] = None,
    _: AsJsonLines = False,
) -> None:
    """Show events of devices, sessions, turns and tools, a JSON object a line (docs/operating/events.md)."""
    wanted = {"kinds": kinds, "query": query, "device": read_mac(device) if device else ""}
    stored = partial(calls.events, kinds=kinds, query=query, device=wanted["device"])
    async with open_control(settings) as control:
        if follow:
            await _follow(control, wanted, after)
        following: int | None = after or 0
        while not follow and following is not None:
            page = await control.send(stored(following))
            for one in page.items:
                typer.echo(one.model_dump_json())
            following = page.next


async def _follow(control: AsyncFleetClient, wanted: dict[str, str], after: int | None) -> None:
    """Show what happens; connect again when the connection ends."""
    pauses = Backoff(limit=10.0)
    while True:
        try:
            async for number, kind, data in calls.follow(control, after=after, **wanted):
                after = after if number is None else number
                typer.echo(f'{{"kind":"gap","data":{data}}}' if kind == "gap" else data)
                pauses.reset()
        except ClientError as error:
            if error.status not in (0, 503):
                raise
            typer.echo(f"{error}; trying again", err=True)
        await pauses.pause()


@operation
async def usage(
    settings: Settings,
    by: Annotated[str, typer.Option(help="Any of day, device, agent, separated by commas.")] = "day",
    since: Annotated[str, typer.Option(help="First day, such as 2026-11-01; by default 30 days.")] = "",
    until: Annotated[str, typer.Option(help="Last day, by default today.")] = "",
    device: Device = "",
    as_json: AsJson = False,
) -> None:
    """Sum turns, calls of tools, tokens and milliseconds of speech."""
    asked = {"since": since or None, "until": until or None, "device": read_mac(device) if device else None}
    async with open_control(settings) as control:
        found = await control.send(calls.usage(by=by, **asked))
    parts = [name.strip() for name in by.split(",") if name.strip()]
    columns = (*parts, *_SUMS, *_TOKENS)
    rows = [[_cell(getattr(one, name)) for name in columns] for one in found.items]
    print_list("usage", columns, rows, as_json=as_json)


def _cell(value: Any) -> str | int:
    return value if isinstance(value, int) else str(value)
