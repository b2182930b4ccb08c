"""The settings of addresses and ports."""

import re
from pathlib import Path

from pydantic import BaseModel, Field, field_validator

from fleet.settings.fields import EVERYWHERE


class Places(BaseModel):
    """Where things are."""

    mqtt_url: str | None = Field(
        None, description="Broker for the workers, mqtt://host:port or mqtts://. Without it `fleet up` starts its own."
    )
    redis_url: str | None = Field(
        None, description="Redis or Valkey, redis://host:port/0. Without it `fleet up` starts its own."
    )
    public_host: str | None = Field(
        None, description="Name or IPv4 address by which devices reach this server. Default: as they reached bootstrap."
    )
    mqtt_host: str = Field(EVERYWHERE, description="Address on which the front or the embedded broker listens.")
    mqtt_port: int = Field(
        1883, ge=0, le=65535, description="MQTT port of the front, for devices. Not 8883: firmware uses TLS there."
    )
    mqtt_public: str | None = Field(
        None, description="host:port of the broker that devices are told. Default: the public host and FLEET_MQTT_PORT."
    )
    udp_host: str = Field(EVERYWHERE, description="Address on which an edge listens for audio.")
    udp_port: int = Field(8884, ge=0, le=65535, description="UDP port of the audio.")
    udp_public: str | None = Field(
        None, description="host:port by which devices reach this edge. `fleet edge` needs it; `fleet up` does not."
    )
    node_name: str = Field(
        "", description="Kubernetes node whose public address an edge takes that has no FLEET_UDP_PUBLIC."
    )
    node_label: str = Field("fleet/public-host", description="Label of that node that wins over its own address.")
    stun_servers: str = Field("", description="host[:port],… of STUN servers that an edge asks for its address.")
    http_host: str = Field(EVERYWHERE, description="Address on which the api listens.")
    http_port: int = Field(8000, ge=0, le=65535, description="HTTP port of the api: bootstrap and health.")
    http_public: str | None = Field(
        None,
        description="http(s)://host[:port] by which devices reach the api. Default: as they reached bootstrap; for the "
        "camera http, FLEET_PUBLIC_HOST and FLEET_HTTP_PORT.",
    )
    data_dir: Path = Field(
        Path.home() / ".local" / "share" / "fleet",
        description="Where `fleet up` keeps its keys and the embedded Redis.",
    )

    @field_validator("http_public")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port] or https://host[:port]")
        return value.rstrip("/") if value else value
