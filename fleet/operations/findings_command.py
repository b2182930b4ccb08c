"""`fleet devices findings`: why a device is silent, over control."""

import asyncio

import typer

from fleet.client import devices
from fleet.core.finding import Finding, exit_code
from fleet.ground.settings import Settings
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson

app = typer.Typer()


@app.command()
@operation
async def findings(settings: Settings, mac: Mac, as_json: AsJson = False) -> int:
    """Show why a device is silent, as `fleet doctor --device MAC` does on the server. Exit code 1: problems."""
    # Imported here: the table needs a module that other commands do not.
    from fleet.operations.doctor.report import show, show_json

    async with open_control(settings) as control:
        answer = await control.send(devices.findings(read_mac(mac)))
    found = [Finding(**one.model_dump()) for one in answer.items]
    if as_json:
        show_json(found)
    else:
        await asyncio.to_thread(show, found)
    return exit_code(found)
