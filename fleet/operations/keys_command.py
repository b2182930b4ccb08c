"""`fleet keys`: lists and rotates the keys from which passwords derive."""

import secrets
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.connect import open_publisher, open_store, operation
from fleet.operations.control_access import find_control
from fleet.operations.job_options import read_share, read_stages
from fleet.operations.json_output import AsJson, print_json
from fleet.operations.listing import print_list
from fleet.operations.rotation import KeysFile, Pace, Rotation
from fleet.operations.rotation_job import RotationJob

app = typer.Typer(help="Keys from which passwords derive: list, rotate.", no_args_is_help=True)

_MOST_NAMED = 20
_COLUMNS = ("key", "state")


@app.command("list")
@operation
async def list_keys(settings: Settings, as_json: AsJson = False) -> None:
    """List the ids of the valid keys. The first one signs new passwords."""
    print_list("keys", _COLUMNS, _rows(KeysFile(_path(settings))), as_json=as_json, heading=False)


@app.command()
@operation
async def rotate(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    settle: Annotated[
        float, typer.Option(min=2, help="Wait after each change of the file, in seconds; all processes read it then.")
    ] = 10.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Devices to restart per second.")] = 5.0,
    reconnect_limit: Annotated[
        float, typer.Option("--patience", min=0, help="Longest wait, in seconds, for the devices to reconnect.")
    ] = 1800.0,
    stages: Annotated[str, typer.Option(help="Shares or numbers of devices, the last is all: 20,10%,100%.")] = "100%",
    soak: Annotated[int, typer.Option(min=0, help="Seconds to watch a stage before the next one.")] = 0,
    window: Annotated[int, typer.Option(help="Devices that restart at a time.")] = 50,
    halt: Annotated[str, typer.Option(help="Share of failures at which it halts.")] = "10%",
    direct: Annotated[
        bool, typer.Option(help="Without control: restart the devices from here, without stages and halt.")
    ] = False,
    force: Annotated[
        bool, typer.Option(help="Remove the old key now; devices that still need it must be switched off and on.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Replace the signing key and lock no device out. An interrupted rotation continues when you run it again.

    The command adds a new key, then signs with it, then restarts idle devices that have an older password, as a job of
    control if one is known. When no device needs the old key, the command removes it. Exit code 1: some devices still
    need the old key, which stays valid. With --json the steps go to the standard error.
    """
    file = KeysFile(_path(settings))
    name = f"fleet-keys-{secrets.token_hex(4)}"
    connecting = open_publisher(settings, lambda: file.read().issue("service", name))
    async with open_store(settings) as store, connecting as publisher:
        report = partial(typer.echo, err=as_json)
        rotation = Rotation(file, DeviceRegistry(store), publisher.publish, report, Pace(settle, rate, reconnect_limit))
        remaining: list[Entry] = []
        if force:
            rotation.retire()
        else:
            policy = {"stages": read_stages(stages, soak), "rate": rate, "window": window}
            policy |= {"halt_share": read_share(halt)}
            async with find_control(settings, direct=direct) as control:
                job = control and RotationJob(control, policy, reconnect_limit, show=not as_json)
                remaining = await rotation.run(job.run if job else None)
    if as_json:
        keys = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(file)]
        print_json("keys", keys, needed_by=[entry.device.mac for entry in remaining])
    elif remaining:
        _print_remaining(remaining)
    return runtime.EXIT_FAILED if remaining else 0


def _rows(file: KeysFile) -> list[tuple[str, str]]:
    return [(name, "still valid" if number else "signs") for number, name in enumerate(file.read().ids)]


def _print_remaining(remaining: list[Entry]) -> None:
    names = ", ".join(entry.device.mac for entry in remaining[:_MOST_NAMED])
    more = f" and {len(remaining) - _MOST_NAMED} more" if len(remaining) > _MOST_NAMED else ""
    typer.echo(f"the old key stays valid for {names}{more}: run this again later, or with --force")


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
