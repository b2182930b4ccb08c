"""The gateway's way for WebSocket clients to be devices, from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.assembly.site import follow_keys, read_keys
from fleet.gateway.device_line import DeviceLines
from fleet.gateway.registrar import OpenLine
from fleet.link.broker import broker_address
from fleet.link.mqtt_url import MqttAddress
from fleet.settings import Settings
from fleet.settings.fields import EVERYWHERE
from fleet.store.access import AccessWatch
from fleet.store.connect import Store
from fleet.tasks import running


@asynccontextmanager
async def registrar_lines(
    settings: Settings, store: Store, broker: MqttAddress | None
) -> AsyncIterator[OpenLine | None]:
    """Give what connects clients as devices, beside the block; None where their credentials could not be checked.

    Args:
        settings: Of the process.
        store: Redis.
        broker: The workers', if this process knows one.

    Raises:
        ConfigError: The address or the keys are wrong.
        Unavailable: Redis does not answer.
    """
    entrance = _entrance(settings, broker)
    if entrance is None or (settings.keys is None and settings.keys_file is None):
        yield None
        return
    keys = read_keys(settings)
    lines = DeviceLines(entrance, keys, store)
    access = AccessWatch(store, keys, expel=lines.expel)
    # Before anybody comes in.
    await access.look()
    async with follow_keys(settings, keys), running("gateway access", access.run):
        yield lines.connect


def _entrance(settings: Settings, broker: MqttAddress | None) -> MqttAddress | None:
    """Return where devices connect."""
    if settings.registrar_mqtt_url is not None:
        return broker_address(settings, settings.registrar_mqtt_url)
    if settings.mqtt_url is not None or broker is None:
        return broker
    # `fleet up` with an embedded broker: that takes the workers, and the front before it the devices.
    host = "127.0.0.1" if settings.mqtt_host == EVERYWHERE else settings.mqtt_host
    return MqttAddress(host, settings.mqtt_port, tls=False) if settings.mqtt_port else None
