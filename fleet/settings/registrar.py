"""The settings of devices that register their tools."""

from pydantic import BaseModel, Field


class Registering(BaseModel):
    """Where WebSocket clients become devices."""

    registrar_mqtt_url: str | None = Field(
        None,
        description="Broker, or front, at which the gateway connects WebSocket clients that have a device's "
        "credentials. Default: FLEET_MQTT_URL; without either, or without keys, no client can be a device.",
    )
