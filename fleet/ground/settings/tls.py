"""The settings of TLS: the server's certificate, and the authorities that it trusts."""

import ipaddress
from pathlib import Path

from pydantic import field_validator, model_validator

from fleet.ground.settings.fields import ALL_ROLES, SettingGroup, setting

FIRMWARE_PORT = 8883
"""The only port on which firmware uses TLS (contract 2.1)."""
LOOPBACK = "127.0.0.1"


class TlsGroup(SettingGroup):
    """TLS towards devices and clients (certificate and key) and towards brokers and Redis (authorities)."""

    title = "TLS"

    tls_cert: Path | None = setting(
        None,
        ("worker", "api", "gateway", "front", "control"),
        syntax="PEM file",
        unset="no TLS towards devices and clients",
    )
    """Certificate, with the intermediate certificates up to its authority. With FLEET_TLS_KEY it switches on TLS for
    MQTT, HTTP and WebSocket, and bootstrap sends port 8883 to devices. Changes of both files take effect without a
    restart. A worker reads it to send cameras an https:// address if FLEET_HTTP_PUBLIC is not set."""
    tls_key: Path | None = setting(None, ("api", "gateway", "front", "control"), syntax="PEM file", masked="file")
    """The certificate's key, without a password."""
    mqtts_port: int = setting(FIRMWARE_PORT, ("front",), syntax="port", ge=0, le=65535)
    """MQTT port with TLS of the front. Devices always connect to 8883, so forward that port to this one."""
    https_port: int = setting(8443, ("worker", "api", "control"), syntax="port", ge=0, le=65535)
    """HTTPS port of the api. A worker sends it to cameras if FLEET_HTTP_PUBLIC is not set."""
    tls_only: bool = setting(False, ("api", "gateway", "front"))
    """Limit plain MQTT, HTTP and WebSocket to this machine: listen on 127.0.0.1. Needs FLEET_TLS_CERT."""
    tls_ca: Path | None = setting(
        None, ALL_ROLES, syntax="PEM file", unset="those of the system, which fleet always trusts"
    )
    """Authorities that fleet trusts for brokers (mqtts://) and Redis (rediss://)."""

    @field_validator("tls_cert", "tls_key", "tls_ca")
    @classmethod
    def _is_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError(f"{value} is no file")
        return value

    @model_validator(mode="after")
    def _belong_together(self) -> "TlsGroup":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("FLEET_TLS_CERT and FLEET_TLS_KEY go together")
        if self.tls_only and self.tls_cert is None:
            raise ValueError("FLEET_TLS_ONLY needs FLEET_TLS_CERT and FLEET_TLS_KEY")
        return self

    def plain_host(self, host: str) -> str:
        """Return the address for a listener without TLS that is configured for `host`."""
        return plain_host(host, tls_only=self.tls_only)


def plain_host(host: str, *, tls_only: bool) -> str:
    """Return the address for a listener without TLS that is configured for `host`."""
    return LOOPBACK if tls_only else host


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
