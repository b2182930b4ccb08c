"""The settings of devices that register their tools."""

from pydantic import BaseModel

from fleet.ground.settings.fields import setting


class Registering(BaseModel):
    """Where WebSocket clients that speak JSON-RPC become devices."""

    registrar_mqtt_url: str | None = setting(
        None,
        "Broker, or front, at which the gateway connects WebSocket clients that have a device's credentials. Without "
        "a broker or without FLEET_KEYS no client can be a device.",
        ("gateway",),
        form="mqtt(s)://host[:port]",
        without="FLEET_MQTT_URL",
    )
