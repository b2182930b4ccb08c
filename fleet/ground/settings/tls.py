"""The settings of TLS: what devices, the api's visitors, brokers and Redis are shown and believed."""

from pathlib import Path

from pydantic import BaseModel, field_validator, model_validator

from fleet.ground.settings.fields import EVERY, setting

FIRMWARE_PORT = 8883
"""The one port on which firmware speaks TLS (contract 2.1)."""
LOOPBACK = "127.0.0.1"


class Tls(BaseModel):
    """TLS towards devices and clients (certificate and key) and towards brokers and Redis (authorities)."""

    tls_cert: Path | None = setting(
        None,
        "Certificate, and those between it and its authority. With FLEET_TLS_KEY it switches on MQTT, HTTPS and "
        "WebSockets with TLS, and bootstrap tells port 8883. Both files are followed without a restart. A worker "
        "reads it to tell cameras an https:// address where FLEET_HTTP_PUBLIC is not set.",
        ("worker", "api", "gateway", "front"),
        form="PEM file",
        without="no TLS towards devices and clients",
    )
    tls_key: Path | None = setting(
        None, "The certificate's key, without a password.", ("api", "gateway", "front"), form="PEM file", hidden="file"
    )
    mqtts_port: int = setting(
        FIRMWARE_PORT,
        "MQTT port with TLS of the front. Devices are always told 8883, so that must lead here.",
        ("front",),
        form="port",
        ge=0,
        le=65535,
    )
    https_port: int = setting(
        8443,
        "HTTPS port of the api. A worker tells cameras this port where FLEET_HTTP_PUBLIC is not set.",
        ("worker", "api"),
        form="port",
        ge=0,
        le=65535,
    )
    tls_only: bool = setting(
        False,
        "Plain MQTT, HTTP and WebSocket are for this machine only, on 127.0.0.1. Needs FLEET_TLS_CERT.",
        ("api", "gateway", "front"),
    )
    tls_ca: Path | None = setting(
        None,
        "Authorities that brokers (mqtts://) and Redis (rediss://) may be certified by.",
        EVERY,
        form="PEM file",
        without="those of the system, which count in any case",
    )

    @field_validator("tls_cert", "tls_key", "tls_ca")
    @classmethod
    def _is_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError(f"{value} is no file")
        return value

    @model_validator(mode="after")
    def _belong_together(self) -> "Tls":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("FLEET_TLS_CERT and FLEET_TLS_KEY go together")
        if self.tls_only and self.tls_cert is None:
            raise ValueError("FLEET_TLS_ONLY needs FLEET_TLS_CERT and FLEET_TLS_KEY")
        return self

    def plain_host(self, host: str) -> str:
        """Return where a listener without TLS that should listen on `host` may."""
        return plain_host(host, tls_only=self.tls_only)


def plain_host(host: str, *, tls_only: bool) -> str:
    """Return where a listener without TLS that should listen on `host` may."""
    return LOOPBACK if tls_only else host
