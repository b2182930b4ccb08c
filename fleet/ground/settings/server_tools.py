"""The settings of tools that run on the server."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, SecretStr, field_validator

from fleet.ground.settings.fields import setting

WeatherProvider = Literal["open-meteo", "off"]
"""The provider of weather forecasts."""


class ServerToolGroup(BaseModel):
    """Tools that run on the server, beside those of devices and clients. Give workers and gateways equal values."""

    device_server_tools: bool = setting(
        True,
        "Whether the model may call the server's tools for voice devices too, not only for clients of the gateway.",
        ("worker",),
    )
    weather: WeatherProvider = setting(
        "open-meteo",
        "Provider of the weather tool. `open-meteo` needs no key, and is free of charge for non-commercial use only. "
        "`off`: there is no weather tool.",
        ("worker", "gateway"),
    )
    weather_url: str = setting(
        "https://api.open-meteo.com",
        "Server of the forecasts, with the API of Open-Meteo.",
        ("worker", "gateway"),
        syntax="http(s)://…, without `/v1/forecast`",
    )
    geocoding_url: str = setting(
        "https://geocoding-api.open-meteo.com",
        "Server that finds places by name, with the API of Open-Meteo.",
        ("worker", "gateway"),
        syntax="http(s)://…, without `/v1/search`",
    )
    weather_api_key: SecretStr | None = setting(
        None, "Key for both servers, for contracts with the provider.", ("worker", "gateway"), unset="none is sent"
    )
    location: str | None = setting(
        None,
        "Location of all users of the server.",
        ("worker", "gateway"),
        syntax="`City` or `City, Region, Country`",
        unset="unknown, unless FLEET_LOCATION_URL is set",
    )
    location_url: str | None = setting(
        None,
        "Service that locates public IP addresses. The server sends it each client's address.",
        ("worker", "gateway"),
        syntax="http(s)://… with `{ip}` in it once",
        unset="the server queries no service",
        masked="part",
    )
    characters: Path | None = setting(
        None,
        "Characters of the role-play tool, in the form of fleet/adapters/tools/characters.toml. Read at start.",
        ("worker", "gateway"),
        syntax="TOML file",
        unset="fleet's built-in characters",
    )
    tool_plugins: str = setting(
        "",
        "Installed plugins whose tools the server offers. A plugin runs inside the server, with all of its rights.",
        ("worker", "gateway"),
        syntax="names, separated by commas",
        unset="none",
    )
    mcp_servers: Path | None = setting(
        None,
        'MCP servers whose tools the server offers: {"mcpServers": {NAME: {"command": …} or {"url": …}}}. The file '
        "may hold credentials. Read at start.",
        ("worker", "gateway"),
        syntax="JSON file",
        unset="none",
        masked="file",
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
