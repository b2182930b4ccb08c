"""`fleet devices`: who is served, who is not, and what is known of each."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.devices.debugging import LONGEST_MINUTES, DebuggedDevices
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.ground.errors import ConfigError
from fleet.ground.local_time import offset
from fleet.ground.settings import Settings
from fleet.operations import ownership_command
from fleet.operations.connect import open_store, read_mac, run
from fleet.operations.devices_table import devices_table
from fleet.operations.notify_command import notify
from fleet.operations.ownership_command import SWITCH

app = typer.Typer(help="Devices: list, bind, accept claims, renew passwords, revoke, notify.", no_args_is_help=True)
app.add_typer(ownership_command.app)
app.command()(notify)

Mac = Annotated[str, typer.Argument(help="MAC of the device, in any usual spelling.")]


@app.command("list")
def list_devices() -> None:
    """Show every device that was heard of within 90 days."""

    async def work(settings: Settings) -> int:
        async with open_store(settings) as store:
            entries = await DeviceRegistry(store).entries()
            admissions = await Admissions(store).read_many([entry.device.mac for entry in entries])
            revoked = await Revocations(store).read()
            state = await PolicyStore(store).read()
        table = devices_table(entries, admissions, revoked, state)
        Console(width=None if Console().is_terminal else 200).print(table)
        unseen = revoked - {entry.device.mac for entry in entries}
        if unseen:
            typer.echo(f"also revoked: {', '.join(sorted(unseen))}")
        return 0

    run(work)


@app.command()
def revoke(mac: Mac) -> None:
    """Shut a device out within five seconds: its connection is closed, and its passwords count no more."""
    _change(mac, revoked=True)


@app.command()
def unrevoke(mac: Mac) -> None:
    """Let a revoked device in again: it must be switched off and on, for a new password."""
    _change(mac, revoked=False)


@app.command()
def timezone(
    mac: Mac,
    zone: Annotated[str, typer.Argument(help="Such as Europe/Berlin, or minutes east of UTC; empty: the server's.")],
) -> None:
    """Set the time zone that a device is told at its next start."""

    async def work(settings: Settings) -> int:
        if zone and offset(zone, datetime.now(UTC)) is None:
            raise ConfigError(f"{zone} is no time zone")
        async with open_store(settings) as store:
            await Admissions(store).set_timezone(read_mac(mac), zone)
        typer.echo(f"{read_mac(mac)}: {zone or 'as the server'}")
        return 0

    run(work)


@app.command()
def debug(
    mac: Mac,
    minutes: Annotated[float, typer.Option(min=0, max=LONGEST_MINUTES, help="For how long; 0 ends it now.")] = 10.0,
) -> None:
    """Write every log line of a device, in every process, down to the level debug and whatever FLEET_LOG_LEVEL says."""

    async def work(settings: Settings) -> int:
        name = read_mac(mac)
        async with open_store(settings) as store:
            await DebuggedDevices(store).set(name, minutes * 60)
        typer.echo(f"{name}: all log lines for {minutes:g} minutes" if minutes else f"{name}: as FLEET_LOG_LEVEL says")
        return 0

    run(work)


def _change(mac: str, *, revoked: bool) -> None:
    async def work(settings: Settings) -> int:
        name = read_mac(mac)
        async with open_store(settings) as store:
            list_ = Revocations(store)
            changed = await (list_.add(name) if revoked else list_.remove(name))
            if revoked and changed:
                await list_.require(name, await Admissions(store).renew(name))
        state = "revoked" if revoked else "not revoked"
        typer.echo(f"{name} is {state}{'' if changed else ' already'}{'' if revoked else f'; {SWITCH}'}")
        return 0

    run(work)
