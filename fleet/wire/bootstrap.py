"""Bootstrap: a device's first request and its answer (contract 1.1 and 1.2).

The device stores every key of `mqtt` in its NVS. NVS limits key names to 15 characters, so no field of `mqtt` may be
longer.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from fleet.wire.firmware import Version, is_board, parse_version
from fleet.wire.locales import read_locale

_LONGEST_TEXT = 64
_LIBRARY = re.compile(
    r"python|curl|wget|okhttp|go-http|java|apache|axios|node|undici|postman|insomnia|httpie|mozilla|opera|libwww|reqwest"
    r"|ruby|php|guzzle|dart|aiohttp|httpx|lua|esp32 http|esp8266http|arduino",
    re.IGNORECASE,
)
"""Beginning of an HTTP library's User-Agent: `okhttp/4.9` has the form board/version, but is no firmware."""


class MqttSection(BaseModel):
    """The device stores this and uses it at every connect. `keepalive` is a number: firmware ignores a string."""

    endpoint: str
    client_id: str
    username: str
    password: str
    publish_topic: str
    subscribe_topic: str = "null"
    """The text, not JSON null. Some old firmware fails without the key (contract 2.2), and py-xiaozhi subscribes to any
    other topic (contract 8)."""
    keepalive: int


class ServerTime(BaseModel):
    """`timestamp` in milliseconds since 1970 UTC, `timezone_offset` in minutes east of it."""

    timestamp: int
    timezone_offset: int


class FirmwareSection(BaseModel):
    """An upgrade that the device begins at once; with `force` 1 also to a lower version than it runs."""

    version: str
    url: str
    force: int | None = None


class ActivationSection(BaseModel):
    """The device shows this, and polls activation, until it is bound.

    It speaks `code` digit by digit. Without `challenge` it would not poll.
    """

    message: str
    code: str | None = None
    challenge: str
    timeout_ms: int = 30_000


class BootstrapAnswer(BaseModel):
    """The whole answer; a missing section is left out, never null."""

    mqtt: MqttSection | None = None
    server_time: ServerTime
    firmware: FirmwareSection | None = None
    activation: ActivationSection | None = None


class _Application(BaseModel):
    version: str = ""


class _Board(BaseModel):
    type: str = ""
    name: str = ""


class BootstrapBody(BaseModel):
    """The used fields of a request's body. All are optional: firmware inserts the SSID unescaped."""

    model_config = ConfigDict(extra="ignore")
    application: _Application = _Application()
    board: _Board = _Board()
    language: Annotated[str, AfterValidator(read_locale)] = ""


def parse_body(body: bytes) -> BootstrapBody:
    """Return a body's fields; all are empty if it is not JSON, not UTF-8, or has other types."""
    try:
        return BootstrapBody.model_validate_json(body)
    except ValidationError:
        return BootstrapBody()


def parse_agent(user_agent: str) -> tuple[str, Version | None]:
    """Return the board and the running firmware of a User-Agent, `<board>/<version>`.

    The board is empty, or the version None, if the text has another form: such a device is offered no firmware.
    """
    board, _, version = user_agent.strip().partition("/")
    return (board if is_board(board) else ""), parse_version(version)


def is_firmware(user_agent: str, activation_version: str) -> bool:
    """Return whether the headers are those of xiaozhi firmware (contract 1.1).

    Firmware sends its activation version, or board and version as User-Agent. A registrar sends neither.
    """
    if activation_version.strip():
        return True
    board, version = parse_agent(user_agent)
    return bool(board) and version is not None and not _LIBRARY.match(user_agent.strip())


def clip(text: str) -> str:
    """Return a device's text as it is stored: printable characters, bounded in length."""
    short = text[:_LONGEST_TEXT]
    return short if short.isprintable() else "".join(char for char in short if char.isprintable())


def endpoint_host(host_header: str) -> str | None:
    """Return the host by which a device reached this server, or None if firmware cannot use it for MQTT.

    Firmware aborts on an endpoint with a scheme or an IPv6 address (contract 1.2).
    """
    host, colon, port = host_header.strip().rpartition(":")
    name = host if colon and port.isdigit() else host_header.strip()
    return name if re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", name) else None
