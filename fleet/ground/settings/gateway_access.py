"""The settings of access to the gateway. The document of its API has none of them, so they have the prefix."""

import re

from pydantic import field_validator

from fleet.ground.settings.fields import SettingGroup, setting
from fleet.ground.settings.rates import RATE, checked_rate


class GatewayAccessGroup(SettingGroup):
    """Access to the gateway. By default all programs have it, as in the document of its API, but few web pages."""

    title = "Access to the gateway"

    wss_port: int = setting(9443, ("gateway", "control"), syntax="port", ge=0, le=65535)
    """Port of the gateway with TLS: wss:// and https://. Needs FLEET_TLS_CERT."""
    gateway_tokens: bool = setting(False, ("gateway",))
    """Whether clients of the gateway need an operator's token with the scope `gateway:connect`. Clients without one get
    401."""
    gateway_origins: str = setting(
        "local", ("gateway",), syntax="http(s)://host[:port], `local`, `null` or `*`, separated by commas"
    )
    """Origins of web pages that may use the gateway, besides pages of its own host. `local`: pages of the browser's own
    machine, and files if the gateway is on that machine too. `null`: all files, and every page that hides its origin.
    `*`: all. Empty: no others. Programs that send no Origin header are not restricted."""
    talk_url: str | None = setting(
        None,
        ("control",),
        syntax="ws(s)://host[:port]/xiaozhi/v1/",
        unset="the console's own host, with CLOUD_PORT or FLEET_WSS_PORT",
    )
    """Address at which browsers reach the gateway to talk to an agent."""
    gateway_each: int | None = setting(
        None,
        ("gateway",),
        unset="a quarter of CLOUD_MAX_CONNECTIONS, at least 10; all of them for a trusted proxy that sends no "
        "address of its client",
        ge=1,
    )
    """Most connections of one address (IPv6: one /64) to a gateway; it closes further ones with 1013. All clients
    behind one router share its address: raise the value for larger sites."""
    rate_gateway: str = setting("100/1000", ("gateway",), syntax=RATE)
    """Messages of one connection of the gateway; each 8 KiB of a large message count as one more. Beyond the rate the
    gateway answers INTERNAL_ERROR, and reads the next message later."""

    @field_validator("gateway_origins")
    @classmethod
    def _are_origins(cls, value: str) -> str:
        for word in filter(None, (part.strip() for part in value.split(","))):
            if not re.fullmatch(r"local|null|\*|https?://(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?", word, re.ASCII):
                raise ValueError(f"{word!r} is not http(s)://host[:port], `local`, `null` or `*`")
        return value

    @field_validator("talk_url")
    @classmethod
    def _is_talk_url(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(
            r"wss?://(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?/xiaozhi/v1/", value
        ):
            raise ValueError("it is not ws(s)://host[:port]/xiaozhi/v1/")
        return value

    @field_validator("rate_gateway")
    @classmethod
    def _is_gateway_rate(cls, value: str) -> str:
        return checked_rate(value)
