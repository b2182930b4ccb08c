"""The settings of tools that run on the server."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

WeatherSource = Literal["open-meteo", "off"]
"""Who tells the weather."""


class ServerSide(BaseModel):
    """What the model may call beside the tools of devices and clients."""

    device_server_tools: bool = Field(
        True, description="Whether the model may call the server's tools for voice devices too, not only for clients."
    )
    weather: WeatherSource = Field(
        "open-meteo",
        description="Who tells the weather: `open-meteo` (needs no key; free of charge for non-commercial use only) or "
        "`off`: then that tool is not offered.",
    )
    weather_url: str = Field(
        "https://api.open-meteo.com", description="Server of the forecasts, up to and without `/v1/forecast`."
    )
    geocoding_url: str = Field(
        "https://geocoding-api.open-meteo.com", description="Server that finds places, up to and without `/v1/search`."
    )
    weather_api_key: SecretStr | None = Field(None, description="Key for both where they want one.")
    location: str | None = Field(None, description="Where the server's users are, `City` or `City, Region, Country`.")
    location_url: str | None = Field(
        None,
        description="Service that knows where public addresses are, http(s)://… with `{ip}` in it; asked about each "
        "client's address. Without it nobody is asked.",
    )
    characters: Path | None = Field(
        None, description="TOML file of the characters of the role play. Default: a few of fleet's own."
    )
    mcp_servers: Path | None = Field(
        None,
        description='JSON file of MCP servers whose tools are offered: {"mcpServers": {NAME: {"command": …} or '
        '{"url": …}}}.',
    )

    @field_validator("weather_url", "geocoding_url")
    @classmethod
    def _is_server(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^\s?#]+", value):
            raise ValueError("must be http://… or https://…")
        return value.rstrip("/")

    @field_validator("location_url")
    @classmethod
    def _names_address(cls, value: str | None) -> str | None:
        if value is not None and (not re.match(r"https?://[^{]", value) or value.count("{ip}") != 1):
            raise ValueError("must be http://… or https://… and hold {ip} once")
        return value
