"""The settings of who may use the gateway, and how much. Its API's document has none of these; hence the prefix."""

import re

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import setting
from fleet.ground.settings.rates import RATE, checked_rate


class GatewayAccess(BaseModel):
    """Who may use the gateway. By default all programs may, as its API's document has it, and few web pages."""

    wss_port: int = setting(
        9443,
        "Port of the gateway with TLS: wss:// and https://. It is open where there is FLEET_TLS_CERT.",
        ("gateway",),
        form="port",
        ge=0,
        le=65535,
    )
    gateway_tokens: bool = setting(
        False,
        "Whether clients of the gateway need an operator's token with the scope `gateway:connect`; without one they "
        "get 401 in place of a connection.",
        ("gateway",),
    )
    gateway_origins: str = setting(
        "local",
        "Web pages that may use the gateway through their visitors' browsers, besides those of its own host. `local` "
        "are pages of the browser's own machine, and files where the gateway is on it too; `null` are all files, and "
        "every page that hides where it is from; `*` are all. Programs are not asked.",
        ("gateway",),
        form="http(s)://host[:port], `local`, `null` or `*`, separated by commas",
        without="only pages of the gateway's own host",
    )
    gateway_each: int | None = setting(
        None,
        "Connections of one address (IPv6: one /64) to a gateway; the next is closed with 1013. A site behind one "
        "router has one address: raise it where more than these use the gateway from there.",
        ("gateway",),
        without="a quarter of CLOUD_MAX_CONNECTIONS, at least 10; all of them for a trusted proxy that does not say "
        "for whom it asks",
        ge=1,
    )
    rate_gateway: str = setting(
        "100/1000",
        "Messages of one connection of the gateway; each 8 KiB of a large one count as one more. Beyond it: "
        "INTERNAL_ERROR, and the next is read later.",
        ("gateway",),
        form=RATE,
    )

    @field_validator("gateway_origins")
    @classmethod
    def _are_origins(cls, value: str) -> str:
        for word in filter(None, (part.strip() for part in value.split(","))):
            if not re.fullmatch(r"local|null|\*|https?://(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?", word, re.ASCII):
                raise ValueError(f"{word!r} is not http(s)://host[:port], `local`, `null` or `*`")
        return value

    @field_validator("rate_gateway")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        return checked_rate(value)
