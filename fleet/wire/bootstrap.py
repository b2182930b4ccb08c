"""The bootstrap answer: what a device's first request is told (contract: every NVS key at most 15 characters)."""

import re

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class MqttSection(BaseModel):
    """Stored by the device and used at every connect. `keepalive` is a number: a string would be ignored."""

    endpoint: str
    client_id: str
    username: str
    password: str
    publish_topic: str
    subscribe_topic: str = "null"
    keepalive: int


class ServerTime(BaseModel):
    """`timestamp` in milliseconds since 1970 UTC, `timezone_offset` in minutes east of it."""

    timestamp: int
    timezone_offset: int


class BootstrapAnswer(BaseModel):
    """The whole answer; absent sections are left out, never null."""

    mqtt: MqttSection
    server_time: ServerTime


class _Application(BaseModel):
    version: str = ""


class _Board(BaseModel):
    type: str = ""
    name: str = ""


class BootstrapBody(BaseModel):
    """What is used of a request's body, all of it optional: firmware inserts the SSID unescaped."""

    model_config = ConfigDict(extra="ignore")
    application: _Application = _Application()
    board: _Board = _Board()
    language: str = Field(default="")


def parse_body(body: bytes) -> BootstrapBody:
    """Return what can be read of a body; an empty one when it is not JSON, not UTF-8, or of other types."""
    try:
        return BootstrapBody.model_validate_json(body)
    except ValidationError:
        return BootstrapBody()


def endpoint_host(host_header: str) -> str | None:
    """Return the host by which a device reached this server, or None when a device could not use it for MQTT.

    An endpoint with a scheme or an IPv6 address makes firmware abort.
    """
    host, colon, port = host_header.strip().rpartition(":")
    name = host if colon and port.isdigit() else host_header.strip()
    return name if re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", name) else None
