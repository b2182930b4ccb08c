"""`fleet keys`: the keys that passwords derive from."""

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

app = typer.Typer(help="Keys that passwords derive from: show, rotate.", no_args_is_help=True)

_CONNECT_SECONDS = 10.0
_MOST_NAMED = 20


@app.command("list")
def list_keys() -> None:
    """Show the ids of the keys that are valid now; the first one signs."""

    async def work(settings: Settings) -> int:
        for number, name in enumerate(KeysFile(_path(settings)).read().ids):
            typer.echo(f"{name}  {'signs' if number == 0 else 'still good'}")
        return 0

    run(work)


@app.command()
def rotate(
    settle: Annotated[float, typer.Option(min=2, help="Seconds until everything has read the changed file.")] = 10.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Devices restarted a second.")] = 5.0,
    patience: Annotated[float, typer.Option(min=0, help="Seconds to wait for devices to come back.")] = 1800.0,
    force: Annotated[
        bool, typer.Option(help="Retire the old key now; devices that still need it are locked out until a restart.")
    ] = False,
) -> None:
    """Replace the signing key without locking anybody out; run again, it goes on where it was.

    A new key is accepted, then signs; devices with an older password are restarted when they are idle; when none is
    left the old key is retired. Exit code 1: some devices still need the old key, which stays good.
    """
    run(lambda settings: _rotate(settings, Pace(settle, rate, patience), force=force))


async def _rotate(settings: Settings, pace: Pace, *, force: bool) -> int:
    file = KeysFile(_path(settings))
    name = f"fleet-keys-{secrets.token_hex(4)}"
    publisher = Publisher(
        broker_address(broker_url(settings), settings.tls_ca), lambda: file.read().issue("service", name)
    )
    async with open_store(settings) as store, running("publisher", publisher.run):
        await _connected(publisher)
        rotation = Rotation(file, DeviceRegistry(store), publisher.publish, typer.echo, pace)
        if force:
            rotation.retire()
            return 0
        return _explain(await rotation.run())


async def _connected(publisher: Publisher) -> None:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            while not publisher.connected:  # noqa: ASYNC110 - it is a state of another task, with a limit
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unavailable("the broker does not take us") from None


def _explain(left: list[Entry]) -> int:
    if not left:
        return 0
    names = ", ".join(entry.device.mac for entry in left[:_MOST_NAMED])
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    typer.echo(f"the old key stays good for {names}{more}: run this again later, or with --force")
    return runtime.EXIT_FAILED


def _path(settings: Settings) -> Path:
    """Return the file with the keys: the one that is set, or that of `fleet up`."""
    if settings.keys is not None:
        raise ConfigError("FLEET_KEYS holds the keys; put them into a file and name it with FLEET_KEYS_FILE")
    return settings.keys_file or settings.data_dir / "keys"
