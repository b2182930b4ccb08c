"""`fleet keys`: lists and rotates the keys from which passwords derive."""

import asyncio
import secrets
from pathlib import Path
from typing import Annotated

import typer

from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.devices.registry import DeviceRegistry, Entry
from fleet.ground import runtime
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings
from fleet.ground.tasks import running
from fleet.operations.connect import broker_url, open_store, run
from fleet.operations.rotation import KeysFile, Pace, Rotation

app = typer.Typer(help="Keys from which passwords derive: list, rotate.", no_args_is_help=True)

_CONNECT_SECONDS = 10.0
_MOST_NAMED = 20


@app.command("list")
def list_keys() -> None:
    """List the ids of the valid keys. The first one signs new passwords."""

    async def work(settings: Settings) -> int:
        for number, name in enumerate(KeysFile(_path(settings)).read().ids):
            typer.echo(f"{name}  {'signs' if number == 0 else 'still valid'}")
        return 0

    run(work)


@app.command()
def rotate(
    settle: Annotated[
        float, typer.Option(min=2, help="Seconds to wait until all processes have read the changed file.")
    ] = 10.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Devices to restart per second.")] = 5.0,
    wait: Annotated[
        float, typer.Option("--patience", min=0, help="Seconds to wait until the devices have reconnected.")
    ] = 1800.0,
    force: Annotated[
        bool, typer.Option(help="Remove the old key now; devices that still need it must be switched off and on.")
    ] = False,
) -> None:
    """Replace the signing key and lock no device out. An interrupted rotation continues when you run it again.

    The command adds a new key, then signs with it, then restarts idle devices that have an older password. When no
    device needs the old key, the command removes it. Exit code 1: some devices still need the old key, which stays
    valid.
    """
    run(lambda settings: _rotate(settings, Pace(settle, rate, wait), force=force))


async def _rotate(settings: Settings, pace: Pace, *, force: bool) -> int:
    file = KeysFile(_path(settings))
    name = f"fleet-keys-{secrets.token_hex(4)}"
    publisher = Publisher(
        broker_address(broker_url(settings), settings.tls_ca), lambda: file.read().issue("service", name)
    )
    async with open_store(settings) as store, running("publisher", publisher.run):
        await _until_connected(publisher)
        rotation = Rotation(file, DeviceRegistry(store), publisher.publish, typer.echo, pace)
        if force:
            rotation.retire()
            return 0
        return _report_remaining(await rotation.run())


async def _until_connected(publisher: Publisher) -> None:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            while not publisher.connected:  # noqa: ASYNC110 - the publisher has no event for it
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable("the broker does not accept the connection") from None


def _report_remaining(remaining: list[Entry]) -> int:
    if not remaining:
        return 0
    names = ", ".join(entry.device.mac for entry in remaining[:_MOST_NAMED])
    more = f" and {len(remaining) - _MOST_NAMED} more" if len(remaining) > _MOST_NAMED else ""
    typer.echo(f"the old key stays valid for {names}{more}: run this again later, or with --force")
    return runtime.EXIT_FAILED


def _path(settings: Settings) -> Path:
    """Return the path of the keys file: FLEET_KEYS_FILE, or the file that `fleet up` generates."""
    if settings.keys is not None:
        raise ConfigError("FLEET_KEYS holds the keys; put them into a file and name it with FLEET_KEYS_FILE")
    return settings.keys_file or settings.data_dir / "keys"
