"""`fleet memory`: shows and deletes what devices remember of their users."""

from typing import Annotated

import typer

from fleet.adapters.redis.devices.memories import Memories
from fleet.client import calls
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import Mac, open_store, operation, read_mac
from fleet.operations.control_access import Direct, find_control
from fleet.operations.direct_audit import audit_direct
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list

app = typer.Typer(help="What devices remember of their users: show, forget, clear.", no_args_is_help=True)


@app.command()
@operation
async def show(settings: Settings, mac: Mac, as_json: AsJson = False, direct: Direct = False) -> None:
    """Show the facts that a device remembers, the oldest first."""
    async with find_control(settings, direct=direct) as control:
        facts = await _read(settings, control, read_mac(mac))
    print_list("facts", ("fact",), [(fact,) for fact in facts], as_json=as_json, heading=False)


@app.command()
@operation
async def forget(
    settings: Settings,
    mac: Mac,
    fact: Annotated[str, typer.Argument(help="The fact, or its first characters if only one fact begins so.")],
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Delete one fact of a device. Turns that begin from now on do not know it."""
    name = read_mac(mac)
    async with find_control(settings, direct=direct) as control:
        known = await _read(settings, control, name)
        # An equal fact comes first: the text of one fact may be the beginning of another.
        found = [one for one in known if one == fact] or [one for one in known if fact and one.startswith(fact)]
        if len(found) != 1:
            raise ConfigError(f"{plural(len(found), 'fact')} of {name} begin with: {visible(fact)}")
        if control is not None:
            await control.send(calls.forget(name, found))
        else:
            await audit_direct(settings, "memory.forget", name, {"facts": 1})
            async with open_store(settings) as store:
                await Memories(store).forget(name, found)
    text = f"{name} has forgotten: {visible(found[0])}"
    print_result("facts", [{"fact": found[0]}], text, as_json=as_json)


@app.command()
@operation
async def clear(
    settings: Settings,
    mac: Mac = "",
    every: Annotated[bool, typer.Option("--all", help="Clear all devices in Redis itself, in place of one.")] = False,
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Delete all facts of a device; its last conversation is not remembered either. Its history stays for its hour."""
    if bool(mac) == every:
        raise ConfigError("name one device, or --all")
    cleared = await _clear(settings, mac, direct=direct)
    lines = [f"{name} has forgotten {plural(count, 'fact')}" for name, count in cleared.items()]
    entries = [{"mac": name, "count": count} for name, count in cleared.items()]
    print_result("devices", entries, "\n".join(lines) or "no device has facts", as_json=as_json)


async def _clear(settings: Settings, mac: str, *, direct: bool) -> dict[str, int]:
    """Clear one device, or all devices if no MAC is given; return how many facts each had."""
    async with find_control(settings, direct=direct or not mac) as control:
        if control is not None:
            name = read_mac(mac)
            return {name: (await control.send(calls.clear(name))).count}
    async with open_store(settings) as store:
        memories, cleared = Memories(store), {}
        for name in [read_mac(mac)] if mac else await memories.all():
            await audit_direct(settings, "memory.clear", name)
            cleared[name] = await memories.clear(name)
        return cleared


async def _read(settings: Settings, control: AsyncFleetClient | None, mac: str) -> list[str]:
    if control is not None:
        return (await control.send(calls.facts(mac))).items
    async with open_store(settings) as store:
        return list(await Memories(store).read(mac))
