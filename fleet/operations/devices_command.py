"""`fleet devices`: lists devices, revokes them, and sets their time zone and log level."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.access.decisions import Decisions
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.devices.debugging import LONGEST_MINUTES, DebuggedDevices
from fleet.client import devices
from fleet.ground.errors import ConfigError
from fleet.ground.local_time import offset
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural
from fleet.operations import (
    calls_command,
    desired_command,
    device_commands,
    findings_command,
    ownership_command,
    registry_command,
)
from fleet.operations.connect import Mac, open_store, operation, read_mac
from fleet.operations.control_access import Direct, find_control
from fleet.operations.decision_output import print_outcome
from fleet.operations.devices_table import devices_table, read_devices
from fleet.operations.direct_audit import audit_direct
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.operations.notify_command import notify
from fleet.operations.ownership_command import POWER_CYCLE
from fleet.wire.control.devices import DecisionOutcome

app = typer.Typer(
    help="Devices: list, search, call, desired, drift, bind, accept claims, revoke, notify, forget.",
    no_args_is_help=True,
)
app.add_typer(ownership_command.app)
app.add_typer(registry_command.app)
app.add_typer(calls_command.app)
app.add_typer(device_commands.app)
app.add_typer(desired_command.app)
app.add_typer(findings_command.app)
app.command()(notify)


@app.command("list")
@operation
async def list_devices(settings: Settings, as_json: AsJson = False) -> None:
    """List the devices that asked bootstrap within the last 90 days, and others that are bound, wait or are revoked.

    State: `online`, `offline`, `revoked`, `waits` (the device shows a code), or `not seen` (bound, but never here or
    not for 90 days).
    """
    async with open_store(settings) as store:
        columns, rows = devices_table(await read_devices(store), await PolicyStore(store).read())
    print_list("devices", columns, rows, as_json=as_json)


@app.command()
@operation
async def revoke(settings: Settings, mac: Mac, direct: Direct = False, as_json: AsJson = False) -> None:
    """Revoke a device: within five seconds its connection is closed and its passwords are refused."""
    await _change(settings, mac, revoked=True, direct=direct, as_json=as_json)


@app.command()
@operation
async def unrevoke(settings: Settings, mac: Mac, direct: Direct = False, as_json: AsJson = False) -> None:
    """Allow a revoked device again. Switch the device off and on, so that it fetches a new password."""
    await _change(settings, mac, revoked=False, direct=direct, as_json=as_json)


@app.command()
@operation
async def timezone(
    settings: Settings,
    mac: Mac,
    zone: Annotated[
        str, typer.Argument(help="Time zone such as Europe/Berlin, or minutes east of UTC; empty: the server's.")
    ],
    as_json: AsJson = False,
) -> None:
    """Set the time zone of a device. The device gets it at its next start."""
    if zone and offset(zone, datetime.now(UTC)) is None:
        raise ConfigError(f"{zone} is not a time zone")
    name = read_mac(mac)
    await audit_direct(settings, "device.timezone", name, {"zone": zone})
    async with open_store(settings) as store:
        await Admissions(store).set_timezone(name, zone)
    text = f"{name}: {zone or 'the time zone of the server'}"
    print_result("devices", [{"mac": name, "time_zone": zone or None}], text, as_json=as_json)


@app.command()
@operation
async def debug(
    settings: Settings,
    mac: Mac,
    minutes: Annotated[
        float, typer.Option(min=0, max=LONGEST_MINUTES, help="Duration in minutes; 0 ends it now.")
    ] = 10.0,
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Log a device at the level debug, in all processes and regardless of FLEET_LOG_LEVEL."""
    name = read_mac(mac)
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            outcome = await control.send(devices.debug(name, minutes))
        else:
            outcome = DecisionOutcome(mac=name, changed=True)
            await audit_direct(settings, "device.debug", name, {"minutes": minutes})
            async with open_store(settings) as store:
                await DebuggedDevices(store).set(name, minutes * 60)
    level = f"debug for {plural(minutes, 'minute')}" if minutes else "FLEET_LOG_LEVEL"
    print_result("devices", [outcome], f"{name}: level {level}", as_json=as_json)


async def _change(settings: Settings, mac: str, *, revoked: bool, direct: bool, as_json: bool) -> None:
    name = read_mac(mac)
    async with find_control(settings, direct=direct) as control:
        if control is not None:
            outcome = await control.send(devices.decide(name, "revoke" if revoked else "unrevoke"))
        else:
            await audit_direct(settings, "device.revoke" if revoked else "device.unrevoke", name)
            async with open_store(settings) as store:
                decisions = Decisions(store)
                changed = await (decisions.revoke(name) if revoked else decisions.unrevoke(name))
            note = POWER_CYCLE if changed and not revoked else ""
            outcome = DecisionOutcome(mac=name, changed=changed, note=note)
    state = f"is {'' if revoked else 'not '}revoked{'' if outcome.changed else ' already'}"
    print_outcome(outcome, state, as_json=as_json)
