"""`fleet announce`: tell devices a text, over control."""

import asyncio
from typing import Annotated

import typer

from fleet.client import announcements
from fleet.client.client import AsyncFleetClient
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural
from fleet.operations.connect import operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.dry_runs import skip_lines
from fleet.operations.inputs import checked
from fleet.operations.job_options import read_share
from fleet.operations.jobs_table import JobScreen
from fleet.operations.json_output import AsJson, print_result
from fleet.wire.announcements import USUAL_WAYS
from fleet.wire.control.announcements import AnnouncementRequest, AnnouncementState

_LOOK_SECONDS = 1.0
_FAILED = 1


@operation
async def announce(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    text: Annotated[str, typer.Argument(help="What the devices say or show.")],
    query: Annotated[str | None, typer.Option(help="Which devices, such as tag.site=berlin; '' means all.")] = None,
    device: Annotated[str | None, typer.Option(help="MAC of one device, instead of a query.")] = None,
    language: Annotated[str, typer.Option(help="Of the text, such as zh; found out from the text without it.")] = "",
    ways: Annotated[str, typer.Option(help="Of speech, notify, alert and wake, by commas.")] = ",".join(USUAL_WAYS),
    quiet: Annotated[str, typer.Option(help="Hours of the device's day in which it is left alone: 22:00-07:00.")] = "",
    expires: Annotated[int, typer.Option(help="Seconds after which unreached devices are given up.")] = 3600,
    rate: Annotated[float, typer.Option(help="Devices a second.")] = 100,
    halt: Annotated[str, typer.Option(help="Share of failures at which it halts; 100% for never.")] = "10%",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show who would be told, and how.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show its progress until it is over.")] = False,
    as_json: AsJson = False,
) -> int:
    """Tell devices a text, also idle ones: spoken, played (firmware 2.5) or shown. Exit code 1: not all were told."""
    asked = {"text": text, "language": language, "quiet": quiet, "expires_seconds": expires, "rate": rate}
    asked |= {"ways": [one.strip() for one in ways.split(",")], "halt_share": read_share(halt)}
    asked |= {"device": read_mac(device)} if device else {}
    asked |= {"query": query} if query is not None else {}
    request = checked(AnnouncementRequest, asked)
    async with open_control(settings) as control:
        if dry_run:
            await _preview(control, request, as_json=as_json)
            return 0
        made = await control.send(announcements.create(request))
        if watch:
            made = await _watch(control, made)
    counts = "".join(f"; {way}: {count}" for way, count in sorted(made.receipts.items()))
    said = f"announcement {made.job.id} is {made.job.state}{counts}"
    print_result("announcements", [made], f"{said}: fleet jobs results {made.job.id}", as_json=as_json)
    return _FAILED if watch and made.job.counts.ok < made.job.devices else 0


async def _preview(control: AsyncFleetClient, request: AnnouncementRequest, *, as_json: bool) -> None:
    found = await control.send(announcements.preview(request))
    left = f"{plural(found.left_today, 'announcement')} left for today"
    lines = [f"{plural(found.devices, 'device')}, {found.online} connected; {left}"]
    lines += [f"{plural(one.devices, 'device')} told by {one.way}" for one in found.ways]
    lines += [*skip_lines(found.waiting, "told later"), *skip_lines(found.skipped)]
    print_result("previews", [found], "\n".join(lines), as_json=as_json)


async def _watch(control: AsyncFleetClient, made: AnnouncementState) -> AnnouncementState:
    with JobScreen() as screen:
        while made.job.state not in ("done", "stopped", "halted", "paused"):
            screen.show(made.job)
            await asyncio.sleep(_LOOK_SECONDS)
            made = await control.send(announcements.read(made.job.id))
        screen.show(made.job)
    return made
