"""The settings of registrars: clients that are devices and register their tools."""

from fleet.ground.settings.address_types import BrokerUrl
from fleet.ground.settings.fields import SettingGroup, setting


class RegistrarGroup(SettingGroup):
    """The broker for WebSocket clients that speak JSON-RPC and are devices."""

    title = "Clients that are devices"

    registrar_mqtt_url: BrokerUrl | None = setting(
        None, ("gateway",), syntax="mqtt(s)://host[:port]", unset="FLEET_MQTT_URL"
    )
    """Broker, or front, to which the gateway connects WebSocket clients that have a device's credentials. Without a
    broker or without FLEET_KEYS no client can be a device."""
