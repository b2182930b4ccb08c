"""`fleet devices`: who is served, who is not, and what is known of each."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fleet.core.local_time import offset
from fleet.errors import ConfigError
from fleet.operations.notify_command import notify
from fleet.operations.reach import reach_store, read_mac, run
from fleet.settings import Settings
from fleet.store.activations import Activations
from fleet.store.admissions import Admission, Admissions
from fleet.store.connect import Store
from fleet.store.debugging import LONGEST_MINUTES, DebuggedDevices
from fleet.store.revocations import Revocations
from fleet.store.roster import Entry, Roster
from fleet.wire.identity import format_username
from fleet.wire.topics import canonical_mac

app = typer.Typer(help="Devices: list, bind, revoke, notify.", no_args_is_help=True)
app.command()(notify)

Mac = Annotated[str, typer.Argument(help="MAC of the device, in any usual spelling.")]


@app.command("list")
def list_devices() -> None:
    """Show every device that was heard of within 90 days."""

    async def work(settings: Settings) -> int:
        async with reach_store(settings) as store:
            entries = await Roster(store).entries()
            standings = await Admissions(store).read_many([entry.device.mac for entry in entries])
            revoked = await Revocations(store).read()
        Console(width=None if Console().is_terminal else 160).print(_table(entries, standings, revoked))
        unseen = revoked - {entry.device.mac for entry in entries}
        if unseen:
            typer.echo(f"also revoked: {', '.join(sorted(unseen))}")
        return 0

    run(work)


@app.command()
def bind(who: Annotated[str, typer.Argument(help="The code that a device shows, or a MAC.")]) -> None:
    """Admit the device that shows a code, or one by its MAC before it first comes (or after its memory was erased)."""

    async def work(settings: Settings) -> int:
        async with reach_store(settings) as store:
            mac, client, serial = await _find(store, who)
            await Admissions(store).bind(mac, client, serial)
        typer.echo(f"{mac} is bound")
        return 0

    run(work)


@app.command()
def unbind(mac: Mac) -> None:
    """Take a device's admission away: with FLEET_ACTIVATION=code it shows a new code at its next start."""

    async def work(settings: Settings) -> int:
        async with reach_store(settings) as store:
            had = await Admissions(store).unbind(read_mac(mac))
        typer.echo(f"{read_mac(mac)} {'is bound no more' if had else 'was not bound'}")
        return 0

    run(work)


@app.command()
def revoke(mac: Mac) -> None:
    """Shut a device out within five seconds: its connection is closed, and its credentials do not count."""
    _change(mac, revoked=True)


@app.command()
def unrevoke(mac: Mac) -> None:
    """Let a revoked device in again."""
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
        async with reach_store(settings) as store:
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
        async with reach_store(settings) as store:
            await DebuggedDevices(store).set(name, minutes * 60)
        typer.echo(f"{name}: all log lines for {minutes:g} minutes" if minutes else f"{name}: as FLEET_LOG_LEVEL says")
        return 0

    run(work)


def _change(mac: str, *, revoked: bool) -> None:
    async def work(settings: Settings) -> int:
        name = read_mac(mac)
        async with reach_store(settings) as store:
            list_ = Revocations(store)
            changed = await (list_.add(name) if revoked else list_.remove(name))
        state = "revoked" if revoked else "not revoked"
        typer.echo(f"{name} is {state}{'' if changed else ' already'}")
        return 0

    run(work)


async def _find(store: Store, who: str) -> tuple[str, str, str]:
    """Return MAC, Client-Id and serial number of who is to be bound."""
    mac = canonical_mac(who)
    if mac is not None:
        return mac, "", ""
    found = await Activations(store).claim(who.strip().replace(" ", ""))
    if found is None:
        raise ConfigError(f"no device shows the code {who} now")
    return found


def _table(entries: list[Entry], standings: list[Admission], revoked: frozenset[str]) -> Table:
    table = Table("device", "state", "board", "firmware", "last start", "key", "connected as", "bound", "time zone")
    for entry, standing in zip(entries, standings, strict=True):
        device = entry.device
        state = "revoked" if device.mac in revoked else "online" if device.online else "offline"
        table.add_row(
            device.mac,
            state,
            device.board,
            device.firmware,
            f"{entry.seen:%Y-%m-%d %H:%M}",
            entry.key,
            _connected(entry),
            "yes" if standing.bound else "",
            standing.timezone,
        )
    return table


def _connected(entry: Entry) -> str:
    """Return key, policy and generation of a device's last connection."""
    if entry.connected is None:
        return "unknown"
    return format_username(entry.connected).removeprefix("device.")
