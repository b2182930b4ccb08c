"""Connects a command to a running system."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Annotated, Concatenate, NoReturn, ParamSpec

import typer

from fleet.adapters.files import endpoints
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.client.store import Store
from fleet.ground import log, runtime
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings, load
from fleet.ground.tasks import running
from fleet.wire.identity import Credentials
from fleet.wire.topics import canonical_mac

Arguments = ParamSpec("Arguments")

Mac = Annotated[str, typer.Argument(help="MAC of the device, with colons, hyphens or no separators.")]
"""Of a command for one device; see `read_mac`."""

_CONNECT_SECONDS = 10.0


def run(work: Callable[[Settings], Coroutine[None, None, int | None]]) -> NoReturn:
    """Run a command and exit with the code that it returns; print a configuration error in one line."""
    settings = load_or_exit()
    log.configure("warning", settings.log_format, pii=False)
    raise typer.Exit(runtime.run(lambda: work(settings)))


def load_or_exit() -> Settings:
    """Return the settings; print a configuration error in one line and exit."""
    try:
        return load()
    except ConfigError as error:
        typer.echo(f"fleet: {error}", err=True)
        raise typer.Exit(runtime.EXIT_MISCONFIGURED) from error


def operation(
    work: Callable[Concatenate[Settings, Arguments], Coroutine[None, None, int | None]],
) -> Callable[Arguments, None]:
    """Return a command that runs `work` with the settings and its own arguments, and exits with the code it returns."""

    @wraps(work)
    def command(*args: Arguments.args, **options: Arguments.kwargs) -> None:
        run(lambda settings: work(settings, *args, **options))

    signature = inspect.signature(work)
    # Typer reads the options of a command from its signature.
    vars(command)["__signature__"] = signature.replace(parameters=list(signature.parameters.values())[1:])
    return command


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the system's Redis: FLEET_REDIS_URL, or the Redis of the `fleet up` on this machine.

    Raises:
        ConfigError: FLEET_REDIS_URL is not set, and no `fleet up` runs on this machine.
        Unavailable: Redis does not answer.
    """
    found = endpoints.find(settings.data_dir)
    url = settings.redis_url or (found.redis_url if found else None)
    if url is None:
        raise ConfigError(f"set FLEET_REDIS_URL; no `fleet up` runs with its data in {settings.data_dir}")
    store = await Store.open(url, settings.shards, settings.tls_ca)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def open_publisher(
    settings: Settings, credentials: Credentials | Callable[[], Credentials]
) -> AsyncIterator[Publisher]:
    """Connect to the system's broker.

    Raises:
        ConfigError: No broker is known.
        Unavailable: The broker does not accept the connection.
    """
    publisher = Publisher(broker_address(broker_url(settings), settings.tls_ca), credentials)
    async with running("publisher", publisher.run):
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                while not publisher.connected:  # noqa: ASYNC110 - the publisher has no event for it
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise Unavailable("the broker does not accept the connection") from None
        yield publisher


def broker_url(settings: Settings) -> str:
    """Return the address of the system's broker: FLEET_MQTT_URL, or the broker of the `fleet up` on this machine.

    Raises:
        ConfigError: FLEET_MQTT_URL is not set, and no `fleet up` runs on this machine.
    """
    found = endpoints.find(settings.data_dir)
    url = settings.mqtt_url or (found.mqtt_url if found else None)
    if url is None:
        raise ConfigError(f"set FLEET_MQTT_URL; no `fleet up` runs with its data in {settings.data_dir}")
    return url


def read_mac(text: str) -> str:
    """Return a MAC in canonical form, by which devices are named.

    Raises:
        ConfigError: The text is not a MAC.
    """
    mac = canonical_mac(text)
    if mac is None:
        raise ConfigError(f"{text} is not a MAC")
    return mac
