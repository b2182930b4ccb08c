"""`fleet reminders`: shows and cancels what users of devices want to be reminded of."""

from typing import Annotated

import typer

from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.client import reminders
from fleet.client.client import AsyncFleetClient
from fleet.core.reminders import time_of
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.connect import Mac, open_store, operation, read_mac
from fleet.operations.control_access import Direct, find_control
from fleet.operations.direct_audit import audit_direct
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.wire.control.reminders import ReminderState

app = typer.Typer(help="Timers and reminders of devices: show, cancel.", no_args_is_help=True)


@app.command()
@operation
async def show(settings: Settings, mac: Mac, as_json: AsJson = False, direct: Direct = False) -> None:
    """Show the timers and reminders of a device, the next one first; times are in UTC."""
    async with find_control(settings, direct=direct) as control:
        found = await _read(settings, control, read_mac(mac))
    rows = [(one.id, one.due, one.daily or "", one.text) for one in found]
    print_list("reminders", ("id", "due", "daily", "text"), rows, as_json=as_json)


@app.command()
@operation
async def cancel(
    settings: Settings,
    mac: Mac,
    reminder: Annotated[str, typer.Argument(help="Id of the reminder, as `show` prints it.")],
    direct: Direct = False,
    as_json: AsJson = False,
) -> None:
    """Cancel a timer or reminder of a device."""
    name = read_mac(mac)
    async with find_control(settings, direct=direct) as control:
        if not any(one.id == reminder for one in await _read(settings, control, name)):
            raise ConfigError(f"{name} has no reminder {reminder!r}")
        if control is not None:
            await control.send(reminders.cancel(name, reminder))
        else:
            await audit_direct(settings, "reminder.cancel", name, {"reminder": reminder})
            async with open_store(settings) as store:
                await Reminders(store).cancel(name, [reminder])
    print_result("reminders", [{"id": reminder}], f"reminder {reminder} of {name} cancelled", as_json=as_json)


async def _read(settings: Settings, control: AsyncFleetClient | None, mac: str) -> list[ReminderState]:
    if control is not None:
        return (await control.send(reminders.read(mac))).items
    async with open_store(settings) as store:
        return [
            ReminderState(id=one.id, text=one.text, due=time_of(one), daily=one.clock or None)
            for one in await Reminders(store).read(mac)
        ]
