"""`fleet groups`: static and dynamic groups of devices, over control."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from fleet.client import groups
from fleet.client.call import Call
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.dry_runs import DryRun, Most, print_change
from fleet.operations.inputs import checked
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_group
from fleet.wire.control.agents import AssignmentPreview
from fleet.wire.control.groups import Group, GroupAddition, GroupPatch, GroupTrial, MemberChange
from fleet.wire.control.jobs import SkipCount
from fleet.wire.control.shapes import USUAL_MOST

app = typer.Typer(help="Groups of devices: list, add, change, members, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the group.")]
Macs = Annotated[list[str], typer.Argument(help="MACs of devices.")]
_AT_ONCE = 500
_Counted = Sequence[tuple[GroupTrial, AssignmentPreview]]
"""Parts of a change, and what each would do."""


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
async def change(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Name,
    query: Annotated[str | None, typer.Option(help="New query of a dynamic group.")] = None,
    notes: Annotated[str | None, typer.Option(help="New notes.")] = None,
    rename: Annotated[str | None, typer.Option(help="New name.")] = None,
    most: Most = USUAL_MOST,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Change the query, the notes or the name of a group. If it has an agent, devices may get another one by it."""
    named = {"query": query, "notes": notes, "name": rename}
    patch = {field: value for field, value in named.items() if value is not None}
    if not patch:
        raise ConfigError("nothing to change: --query, --notes or --rename")
    async with open_control(settings) as control:
        group = await find_group(control, name)
        if dry_run:
            # Only the query of a dynamic group matters, and only the name of a static one.
            renamed = rename is not None and query is None and not group.query
            wanted = {"name": rename} if renamed else {"query": group.query if query is None else query}
            trial = checked(GroupTrial, wanted)
            print_change(await control.send(groups.preview(group.id, trial)), as_json=as_json)
            return
        call = groups.change(group.id, checked(GroupPatch, {**patch, "most": most}))
        changed = await control.send(call.of_version(group.version))
    print_result("groups", [changed], f"{visible(changed.name)} is changed", as_json=as_json)


@app.command()
@operation
async def include(
    settings: Settings,
    name: Name,
    macs: Macs,
    most: Most = USUAL_MOST,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Add devices to a static group. Exit code 1: some are unknown."""
    trials = [GroupTrial(add=part) for part in _parts(macs)]
    return await _change_members(settings, name, trials, None if dry_run else most, as_json=as_json)


@app.command()
@operation
async def exclude(
    settings: Settings,
    name: Name,
    macs: Macs,
    most: Most = USUAL_MOST,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Remove devices from a static group. Exit code 1: some are unknown."""
    trials = [GroupTrial(remove=part) for part in _parts(macs)]
    return await _change_members(settings, name, trials, None if dry_run else most, as_json=as_json)


@app.command()
@operation
async def remove(
    settings: Settings, name: Name, most: Most = USUAL_MOST, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Delete a group; its devices stay. If it has an agent, they get the next agent that is theirs."""
    async with open_control(settings) as control:
        found = await find_group(control, name)
        if dry_run:
            print_change(await control.send(groups.preview(found.id, GroupTrial())), as_json=as_json)
            return
        await control.send(groups.remove(found.id, most))
    print_result("groups", [found], f"{visible(name)} is removed", as_json=as_json)


def _parts(macs: list[str]) -> list[list[str]]:
    whole = list(dict.fromkeys(read_mac(mac) for mac in macs))
    return [whole[at : at + _AT_ONCE] for at in range(0, len(whole), _AT_ONCE)]


async def _change_members(
    settings: Settings, name: str, trials: Sequence[GroupTrial], most: int | None, *, as_json: bool
) -> int:
    """Add or remove the devices of all parts, or only count what that would do, if `most` is None."""
    async with open_control(settings) as control:
        group = await find_group(control, name)
        counted = await _count(control, group, trials)
        if most is None:
            return _preview(counted, as_json=as_json)
        _check(counted, most)
        done = [await control.send(_call(group, trial, found.changing)) for trial, found in counted]
    verb = "added" if any(trial.add for trial in trials) else "removed"
    return _report(name, done, verb, as_json=as_json)


def _call(group: Group, trial: GroupTrial, most: int) -> Call[MemberChange]:
    if trial.add:
        return groups.add_members(group.id, trial.add, most)
    return groups.remove_members(group.id, trial.remove or (), most)


async def _count(control: AsyncFleetClient, group: Group, trials: Sequence[GroupTrial]) -> _Counted:
    """Count what all parts of a change would do, before the first of them is done."""
    return [(trial, await control.send(groups.preview(group.id, trial))) for trial in trials]


def _check(counted: _Counted, most: int) -> None:
    """Check that not more devices get another agent than was said.

    Raises:
        ConfigError: There are more.
    """
    changing = sum(found.changing for _, found in counted)
    if changing > most:
        raise ConfigError(f"{changing} devices would get another agent, and --most is {most}: see --dry-run")


def _preview(counted: _Counted, *, as_json: bool) -> int:
    found = [preview for _, preview in counted]
    skipped = sum((Counter({one.reason: one.devices for one in part.skipped}) for part in found), Counter[str]())
    whole = AssignmentPreview(
        devices=sum(one.devices for one in found),
        online=sum(one.online for one in found),
        skipped=[SkipCount(reason=reason, devices=count) for reason, count in sorted(skipped.items())],
        changing=sum(one.changing for one in found),
        talking=sum(one.talking for one in found),
        counted=all(one.counted for one in found),
        query=found[0].query if len(found) == 1 else "",
    )
    print_change(whole, as_json=as_json)
    return 0


def _report(name: str, done: list[MemberChange], what: str, *, as_json: bool) -> int:
    changed, unknown = sum(one.changed for one in done), [mac for one in done for mac in one.unknown]
    entry = {"name": name, "changed": changed, "unknown": unknown}
    print_result("groups", [entry], f"{plural(changed, 'device')} {what}", as_json=as_json)
    for mac in unknown:
        typer.echo(f"{mac} is unknown", err=True)
    return 1 if unknown else 0
