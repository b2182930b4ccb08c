"""`fleet memory`: shows and deletes what devices remember of their users."""

from typing import Annotated

import typer

from fleet.adapters.redis.devices.memories import Memories
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import open_store, operation, read_mac
from fleet.operations.listing import AsJson, print_list

app = typer.Typer(help="What devices remember of their users: show, forget, clear.", no_args_is_help=True)

Mac = Annotated[str, typer.Argument(help="MAC of the device, with colons, hyphens or no separators.")]


@app.command()
@operation
async def show(settings: Settings, mac: Mac, as_json: AsJson = False) -> None:
    """Show the facts that a device remembers, the oldest first."""
    async with open_store(settings) as store:
        facts = await Memories(store).read(read_mac(mac))
    print_list("facts", ("fact",), [(fact,) for fact in facts], as_json=as_json, heading=False)


@app.command()
@operation
async def forget(
    settings: Settings,
    mac: Mac,
    fact: Annotated[str, typer.Argument(help="The fact, or its first characters if only one fact begins so.")],
) -> None:
    """Delete one fact of a device. Turns that begin from now on do not know it."""
    name = read_mac(mac)
    async with open_store(settings) as store:
        memories = Memories(store)
        known = await memories.read(name)
        # One fact may be the beginning of another.
        found = [one for one in known if one == fact] or [one for one in known if fact and one.startswith(fact)]
        if len(found) != 1:
            raise ConfigError(f"{plural(len(found), 'fact')} of {name} begin with: {visible(fact)}")
        await memories.forget(name, found)
    typer.echo(f"{name} has forgotten: {visible(found[0])}")


@app.command()
@operation
async def clear(
    settings: Settings,
    mac: Annotated[str, typer.Argument(help="MAC of the device, with colons, hyphens or no separators.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Clear all devices, in place of one.")] = False,
) -> None:
    """Delete all facts of a device; its last conversation is not remembered either. Its history stays for its hour."""
    if bool(mac) == every:
        raise ConfigError("name one device, or --all")
    async with open_store(settings) as store:
        memories = Memories(store)
        for name in await memories.all() if every else [read_mac(mac)]:
            typer.echo(f"{name} has forgotten {plural(await memories.clear(name), 'fact')}")
