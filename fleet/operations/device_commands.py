"""`fleet devices command|commands|cancel`: calls of tools that wait for a device, over control."""

from typing import Annotated

import typer

from fleet.client import device_commands
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_pair
from fleet.operations.json_output import AsJson, print_result
from fleet.operations.listing import print_list
from fleet.wire.control.device_commands import DeviceCommandRequest, DeviceCommandState

app = typer.Typer()


@app.command()
@operation
async def command(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    mac: Mac,
    tool: Annotated[str, typer.Argument(help="The tool's name, such as self.audio_speaker.set_volume.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments as name=value, such as volume=40.")] = None,
    expires: Annotated[int, typer.Option(help="Seconds after which it is given up.")] = 86_400,
    key: Annotated[str, typer.Option(help="Replaces an older command of the device with the same key.")] = "",
    busy: Annotated[bool, typer.Option("--busy", help="Call the device in a session, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Call a tool as soon as the device is there, at most once."""
    given = dict(read_pair(text) for text in arguments or ())
    asked = {"tool": tool, "arguments": given, "expires_seconds": expires, "key": key, "idle": not busy}
    async with open_control(settings) as control:
        made = await control.send(device_commands.create(read_mac(mac), checked(DeviceCommandRequest, asked)))
    _report(made, as_json=as_json)


@app.command("commands")
@operation
async def list_commands(settings: Settings, mac: Mac, as_json: AsJson = False) -> None:
    """List the newest commands of a device."""
    async with open_control(settings) as control:
        found = (await control.send(device_commands.listing(read_mac(mac)))).items
    rows = [(one.id, one.tool, one.key, one.state, visible(one.text)) for one in found]
    print_list("commands", ("id", "tool", "key", "state", "text"), rows, as_json=as_json)


@app.command()
@operation
async def cancel(
    settings: Settings,
    mac: Mac,
    number: Annotated[int, typer.Argument(min=1, help="Number of the command.")],
    as_json: AsJson = False,
) -> None:
    """Give a command up that was not sent."""
    async with open_control(settings) as control:
        found = await control.send(device_commands.cancel(read_mac(mac), number))
    _report(found, as_json=as_json)


def _report(one: DeviceCommandState, *, as_json: bool) -> None:
    print_result("commands", [one], f"command {one.id} is {one.state}", as_json=as_json)
