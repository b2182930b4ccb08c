"""`fleet devices desired` and `drift`: what devices should be set to, and where they are not."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fleet.client import desired as calls
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_pair
from fleet.operations.json_output import AsJson, print_json
from fleet.operations.listing import print_list
from fleet.wire.control.desired import DesiredDocument, DesiredPatch, DesiredPropertyView

app = typer.Typer()

_TOOLS = "tools."
_COLUMNS = ("property", "desired", "reported", "policy", "state")


@app.command()
@operation
async def desired(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    mac: Mac,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="volume=40, brightness=, theme=, timezone=, language=, agent=, tools.NAME=ARGUMENTS."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A property that is left to the user again.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME=POLICY", help="volume=enforce, =watch or =once.")
    ] = None,
    version: Annotated[int | None, typer.Option(min=0, help="Change it only if it still has this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a device should be set to and what it reports; or change it, now or when it connects."""
    name, patch = read_mac(mac), patch_of(values or (), remove or (), policy or ())
    async with open_control(settings) as control:
        if patch is None:
            found = await control.send(calls.read(name))
        else:
            call = calls.change(name, patch)
            found = await control.send(call if version is None else call.of_version(version))
    if as_json:
        print_json("devices", [found])
    else:
        print_list(f"{name}, version {found.version}", _COLUMNS, map(_row, found.properties), as_json=False)


@app.command()
@operation
async def drift(settings: Settings, as_json: AsJson = False) -> None:
    """List the devices that report another value than they should."""
    found: list[DesiredDocument] = []
    async with open_control(settings) as control:
        async for page in control.pages(calls.drift()):
            found += page.items
    if as_json:
        print_json("devices", found)
        return
    rows = [(one.device, *_row(of)) for one in found for of in one.properties if of.state == "drift"]
    print_list("drifting devices", ("device", *_COLUMNS), rows, as_json=False)


def patch_of(values: Sequence[str], remove: Sequence[str], policy: Sequence[str]) -> DesiredPatch | None:
    """Return the change that options name; None if they name none.

    Raises:
        ConfigError: A value does not fit.
    """
    wanted = [read_pair(text) for text in values] + [(name, None) for name in remove]
    patch: dict[str, Any] = {}
    for name, value in wanted:
        if name.startswith(_TOOLS):
            patch.setdefault("tools", {})[name.removeprefix(_TOOLS)] = value
        else:
            patch[name] = value
    policies = {}
    for text in policy:
        name, equals, chosen = text.partition("=")
        if not equals:
            raise ConfigError(f"write a policy as volume=enforce: {visible(text)}")
        policies[name] = chosen
    if not patch and not policies:
        return None
    asked = {**({"desired": patch} if patch else {}), **({"policies": policies} if policies else {})}
    return checked(DesiredPatch, asked)


def _row(one: DesiredPropertyView) -> tuple[str, str, str, str, str]:
    reported = "" if one.reported is None else str(one.reported)
    state = f"{one.state}: {visible(one.text)}" if one.text else one.state
    return one.name, visible(str(one.desired)), visible(reported), one.policy, state
