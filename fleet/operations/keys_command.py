"""`fleet keys`: lists and rotates the keys from which passwords derive."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.connect import open_publisher, open_store, operation
from fleet.operations.listing import AsJson, print_list
from fleet.operations.rotation import KeysFile, Pace, Rotation

app = typer.Typer(help="Keys from which passwords derive: list, rotate.", no_args_is_help=True)

_MOST_NAMED = 20


@app.command("list")
@operation
async def list_keys(settings: Settings, as_json: AsJson = False) -> None:
    """List the ids of the valid keys. The first one signs new passwords."""
    names = KeysFile(_path(settings)).read().ids
    rows = [(name, "still valid" if number else "signs") for number, name in enumerate(names)]
    print_list("keys", ("key", "state"), rows, as_json=as_json, heading=False)


@app.command()
@operation
async def rotate(
    settings: Settings,
    settle: Annotated[
        float, typer.Option(min=2, help="Wait after each change of the file, in seconds; all processes read it then.")
    ] = 10.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Devices to restart per second.")] = 5.0,
    reconnect_limit: Annotated[
        float, typer.Option("--patience", min=0, help="Longest wait, in seconds, for the devices to reconnect.")
    ] = 1800.0,
    force: Annotated[
        bool, typer.Option(help="Remove the old key now; devices that still need it must be switched off and on.")
    ] = False,
) -> int:
    """Replace the signing key and lock no device out. An interrupted rotation continues when you run it again.

    The command adds a new key, then signs with it, then restarts idle devices that have an older password. When no
    device needs the old key, the command removes it. Exit code 1: some devices still need the old key, which stays
    valid.
    """
    file = KeysFile(_path(settings))
    name = f"fleet-keys-{secrets.token_hex(4)}"
    connecting = open_publisher(settings, lambda: file.read().issue("service", name))
    async with open_store(settings) as store, connecting as publisher:
        rotation = Rotation(
            file, DeviceRegistry(store), publisher.publish, typer.echo, Pace(settle, rate, reconnect_limit)
        )
        if force:
            rotation.retire()
            return 0
        return _report_remaining(await rotation.run())


def _report_remaining(remaining: list[Entry]) -> int:
    if not remaining:
        return 0
    names = ", ".join(entry.device.mac for entry in remaining[:_MOST_NAMED])
    more = f" and {len(remaining) - _MOST_NAMED} more" if len(remaining) > _MOST_NAMED else ""
    typer.echo(f"the old key stays valid for {names}{more}: run this again later, or with --force")
    return runtime.EXIT_FAILED


def _path(settings: Settings) -> Path:
    """Return the path of the keys file: FLEET_KEYS_FILE, or the file that `fleet up` generates.

    Raises:
        ConfigError: There is no such file.
    """
    if settings.keys is not None:
        raise ConfigError("FLEET_KEYS holds the keys; put them into a file and name it with FLEET_KEYS_FILE")
    path = settings.keys_file or settings.data_dir / "keys"
    if not path.exists():
        remedy = "name an existing file" if settings.keys_file else "`fleet up` makes it; else set FLEET_KEYS_FILE"
        raise ConfigError(f"there is no keys file {path}: {remedy}, or FLEET_DATA_DIR to the folder of a `fleet up`")
    return path
