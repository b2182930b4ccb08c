"""`fleet agents assign|unassign|assignments`: who has which agent, over control."""

from typing import Annotated, Any

import typer

from fleet.client import agents
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.dry_runs import DryRun, Most, print_change
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_agent, find_group
from fleet.wire.control.agents import AssignmentTrial, NewAssignment, Settled
from fleet.wire.control.shapes import USUAL_MOST

app = typer.Typer()

Device = Annotated[str, typer.Option(help="MAC of the device.")]
OfGroup = Annotated[str, typer.Option(help="Name of the group.")]
Site = Annotated[bool, typer.Option("--site", help="All devices that have no other agent.")]


@app.command()
@operation
async def assign(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Annotated[str, typer.Argument(help="Name of the agent.")],
    device: Device = "",
    group: OfGroup = "",
    site: Site = False,
    rank: Annotated[int, typer.Option(min=-1000, max=1000, help="Of a group: the highest goes before others.")] = 0,
    most: Most = USUAL_MOST,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Give an agent to a device, a group or the site: its own goes before its group's, this before the site's."""
    async with open_control(settings) as control:
        agent = await find_agent(control, name)
        whom = await _whom(control, device, group, site=site, rank=rank, most=most)
        if dry_run:
            await _preview(control, whom, agent.id, as_json=as_json)
            return
        done = await control.send(agents.assign(agent.id, whom))
    _report(done, f"{visible(name)} is assigned", as_json=as_json)


@app.command()
@operation
async def unassign(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    device: Device = "",
    group: OfGroup = "",
    site: Site = False,
    most: Most = USUAL_MOST,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take the agent of a device, a group or the site away; the devices get the next agent that is theirs."""
    async with open_control(settings) as control:
        whom = await _whom(control, device, group, site=site, most=most)
        if dry_run:
            await _preview(control, whom, None, as_json=as_json)
            return
        done = await control.send(agents.unassign(whom))
    _report(done, "the agent is taken away", as_json=as_json)


@app.command()
@operation
async def assignments(settings: Settings, as_json: AsJson = False) -> None:
    """List the devices and groups that have an agent of their own, and the agent of the site."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(agents.assignments()) for one in page.items]
        names = {one.id: one.name async for page in control.pages(agents.listing()) for one in page.items}
    rows = [
        (names.get(one.agent, str(one.agent)), one.device, one.group, str(one.site).lower(), one.rank) for one in found
    ]
    print_list("assignments", ("agent", "device", "group", "site", "rank"), rows, as_json=as_json)


async def _preview(control: AsyncFleetClient, whom: NewAssignment, agent: int | None, *, as_json: bool) -> None:
    found = await control.send(agents.preview(AssignmentTrial(**whom.model_dump(), agent=agent)))
    print_change(found, as_json=as_json)


async def _whom(
    control: AsyncFleetClient, device: str, group: str, *, site: bool, most: int, rank: int = 0
) -> NewAssignment:
    """Return the devices that the options name.

    Raises:
        ConfigError: Not exactly one, no MAC, or no such group.
    """
    if sum((bool(device), bool(group), site)) != 1:
        raise ConfigError("name one of --device, --group and --site")
    whom: dict[str, Any] = {"site": True}
    if device:
        whom = {"device": read_mac(device)}
    elif group:
        whom = {"group": (await find_group(control, group)).id}
    return NewAssignment.model_validate({**whom, "rank": rank, "most": most})


def _report(done: Settled, text: str, *, as_json: bool) -> None:
    rest = "; the rest follows within half a minute" if done.more else ""
    got = f"{plural(done.devices, 'device')} got another agent{rest}"
    print_result("settled", [done], f"{text}: {got}", as_json=as_json)
