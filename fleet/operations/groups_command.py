"""`fleet groups`: static and dynamic groups of devices, over control."""

from typing import Annotated

import typer

from fleet.client import groups
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_group
from fleet.wire.control.groups import GroupAddition, MemberChange

app = typer.Typer(help="Groups of devices: list, add, show, members, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the group.")]
Macs = Annotated[list[str], typer.Argument(help="MACs of devices.")]
_AT_ONCE = 500


@app.command("list")
@operation
async def list_groups(settings: Settings, as_json: AsJson = False) -> None:
    """List the groups. A group with a query is dynamic."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(groups.listing()) for one in page.items]
    rows = [(one.name, one.kind, one.query, one.notes) for one in found]
    print_list("groups", ("name", "kind", "query", "notes"), rows, as_json=as_json)


@app.command()
@operation
async def add(
    settings: Settings,
    name: Name,
    query: Annotated[
        str, typer.Option(help="Makes the group dynamic: its members are the devices that it means.")
    ] = "",
    notes: Annotated[str, typer.Option(help="Notes.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a group."""
    async with open_control(settings) as control:
        made = await control.send(groups.add(GroupAddition(name=name, query=query, notes=notes)))
    print_result("groups", [made], f"{visible(made.name)} is a {made.kind} group", as_json=as_json)


@app.command()
@operation
async def members(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """List the devices of a group."""
    async with open_control(settings) as control:
        group = await find_group(control, name)
        found = [one async for page in control.pages(groups.members(group.id)) for one in page.items]
    rows = [(one.mac, one.name, str(one.online).lower()) for one in found]
    print_list("members", ("device", "name", "online"), rows, as_json=as_json)


@app.command()
@operation
async def include(settings: Settings, name: Name, macs: Macs, as_json: AsJson = False) -> int:
    """Add devices to a static group. Exit code 1: some are unknown."""
    async with open_control(settings) as control:
        group = await find_group(control, name)
        done = [await control.send(groups.add_members(group.id, part)) for part in _parts(macs)]
    return _report(name, done, "added", as_json=as_json)


@app.command()
@operation
async def exclude(settings: Settings, name: Name, macs: Macs, as_json: AsJson = False) -> int:
    """Remove devices from a static group."""
    async with open_control(settings) as control:
        group = await find_group(control, name)
        done = [await control.send(groups.remove_members(group.id, part)) for part in _parts(macs)]
    return _report(name, done, "removed", as_json=as_json)


@app.command()
@operation
async def remove(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Delete a group; its devices stay."""
    async with open_control(settings) as control:
        found = await find_group(control, name)
        await control.send(groups.remove(found.id))
    print_result("groups", [found], f"{visible(name)} is removed", as_json=as_json)


def _parts(macs: list[str]) -> list[list[str]]:
    whole = [read_mac(mac) for mac in macs]
    return [whole[at : at + _AT_ONCE] for at in range(0, len(whole), _AT_ONCE)]


def _report(name: str, done: list[MemberChange], what: str, *, as_json: bool) -> int:
    changed, unknown = sum(one.changed for one in done), [mac for one in done for mac in one.unknown]
    entry = {"name": name, "changed": changed, "unknown": unknown}
    print_result("groups", [entry], f"{plural(changed, 'device')} {what}", as_json=as_json)
    for mac in unknown:
        typer.echo(f"{mac} is unknown", err=True)
    return 1 if unknown else 0
