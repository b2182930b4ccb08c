"""Resources that the roles of a process share."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from fleet.adapters.files.watched_file import WatchedFile
from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.access.watch import KeysWatch
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.debugging import DebuggedDevices, DebugWatch
from fleet.ground.errors import ConfigError
from fleet.ground.log import watch_devices
from fleet.ground.settings import Settings
from fleet.ground.tasks import running
from fleet.wire.identity import CredentialKeys


@dataclass(frozen=True, slots=True)
class ProcessResources:
    """Resources that all roles of a process share."""

    settings: Settings
    keys: CredentialKeys
    broker: MqttAddress | None
    """None for a role that does not speak MQTT."""
    store: Store
    readiness: Readiness = field(default_factory=Readiness)
    """Each role registers its requirements here."""


@asynccontextmanager
async def open_resources(
    settings: Settings, *, broker: bool = True, readiness: Readiness | None = None
) -> AsyncIterator[ProcessResources]:
    """Open the resources of a role that runs as a separate process; the settings must name all of them.

    Args:
        settings: Of the process.
        broker: Whether the role speaks MQTT.
        readiness: Of the process.

    Raises:
        ConfigError: FLEET_MQTT_URL, FLEET_REDIS_URL or FLEET_KEYS is missing or wrong.
    """
    needed = {"REDIS_URL": settings.redis_url, "KEYS": settings.keys or settings.keys_file}
    for name, value in {**needed, **({"MQTT_URL": settings.mqtt_url} if broker else {})}.items():
        if value is None:
            raise ConfigError(f"FLEET_{name} is missing; only `fleet up` brings its own")
    address = broker_address(settings.mqtt_url, settings.tls_ca) if broker and settings.mqtt_url else None
    store = await Store.open(settings.redis_url or "", settings.shards, settings.tls_ca)
    try:
        keys = read_keys(settings)
        ready = readiness or Readiness()
        async with follow_keys(settings, keys), follow_debugging(store):
            with ready.pinging("redis", store.ping_writes):
                yield ProcessResources(settings, keys, address, store, ready)
    finally:
        await store.close()


def follow_debugging(store: Store) -> AbstractAsyncContextManager[None]:
    """During the block, write all log lines of the devices of `fleet devices debug`."""
    return running("debugged devices", DebugWatch(DebuggedDevices(store), watch_devices).run)


def read_keys(settings: Settings) -> CredentialKeys:
    """Return the keys from which passwords derive.

    Raises:
        ConfigError: Both FLEET_KEYS and FLEET_KEYS_FILE are set, or there are no valid keys.
    """
    if settings.keys is not None and settings.keys_file is not None:
        raise ConfigError("set FLEET_KEYS or FLEET_KEYS_FILE, not both")
    if settings.keys_file is not None:
        return CredentialKeys(WatchedFile(settings.keys_file).read())
    return CredentialKeys(settings.keys.get_secret_value() if settings.keys else "")


@asynccontextmanager
async def follow_keys(settings: Settings, keys: CredentialKeys) -> AsyncIterator[None]:
    """Follow changes of the keys file during the block, if there is one."""
    if settings.keys_file is None:
        yield
        return
    async with running("keys file", KeysWatch(settings.keys_file, keys).run):
        yield
