"""The settings of TLS: what devices, the api's visitors, brokers and Redis are shown and believed."""

from pathlib import Path

from pydantic import BaseModel, Field, field_validator, model_validator

FIRMWARE_PORT = 8883
"""The one port on which firmware speaks TLS (contract 2.1)."""
LOOPBACK = "127.0.0.1"


class Tls(BaseModel):
    """TLS towards devices (certificate and key) and towards brokers and Redis (authorities)."""

    tls_cert: Path | None = Field(
        None,
        description="PEM file with the certificate, and those between it and its authority. With FLEET_TLS_KEY it "
        "switches on MQTT and HTTPS with TLS; both files are followed.",
    )
    tls_key: Path | None = Field(None, description="PEM file with the certificate's key, without a password.")
    mqtts_port: int = Field(
        FIRMWARE_PORT, ge=0, le=65535, description="MQTT port with TLS of the front. Devices are always told 8883."
    )
    https_port: int = Field(8443, ge=0, le=65535, description="HTTPS port of the api.")
    tls_only: bool = Field(False, description="Plain MQTT and HTTP are for this machine only, on 127.0.0.1.")
    tls_ca: Path | None = Field(
        None, description="PEM file with authorities for mqtts:// and rediss://, besides those of the system."
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
        return LOOPBACK if self.tls_only else host
