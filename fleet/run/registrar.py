"""Connects clients of the gateway to the broker as devices, from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.ground.settings import Settings
from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.ground.tasks import running
from fleet.roles.gateway.registrar.device_connection import DeviceConnections
from fleet.run.resources import follow_keys, read_keys


@asynccontextmanager
async def device_connections(
    settings: Settings, store: Store, broker: MqttAddress | None
) -> AsyncIterator[DeviceConnections | None]:
    """Give what connects clients as devices; None if there is no broker or no key to check clients.

    Args:
        settings: Of the process.
        store: Redis.
        broker: The workers' broker, if this process knows it.

    Raises:
        ConfigError: The address or the keys are not valid.
        Unavailable: Redis does not answer.
    """
    device_broker = _device_broker(settings, broker)
    if device_broker is None or (settings.keys is None and settings.keys_file is None):
        yield None
        return
    keys = read_keys(settings)
    connections = DeviceConnections(device_broker, keys, store)
    access = AccessWatch(store, keys, expel=connections.expel)
    # Load revocations before the first connection.
    await access.look()
    async with follow_keys(settings, keys), running("gateway access", access.run):
        yield connections


def _device_broker(settings: Settings, broker: MqttAddress | None) -> MqttAddress | None:
    """Return the address at which devices connect."""
    if settings.registrar_mqtt_url is not None:
        return broker_address(settings.registrar_mqtt_url, settings.tls_ca)
    if settings.mqtt_url is not None or broker is None:
        return broker
    # `fleet up` with an embedded broker: workers connect to the broker, devices to the front before it.
    host = "127.0.0.1" if settings.mqtt_host == ANY_ADDRESS else settings.mqtt_host
    return MqttAddress(host, settings.mqtt_port, tls=False) if settings.mqtt_port else None
