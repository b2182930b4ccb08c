"""The settings of tools that run on the server."""

import re
from pathlib import Path
from typing import Literal

from pydantic import SecretStr, field_validator

from fleet.ground.settings.fields import SettingGroup, setting

WeatherProvider = Literal["open-meteo", "off"]
"""The provider of weather forecasts."""


class ServerToolGroup(SettingGroup):
    """Tools that run on the server, beside those of devices and clients. Give workers and gateways equal values."""

    title = "Tools of the server"

    device_server_tools: bool = setting(True, ("worker",))
    """Whether the model may call the server's tools for voice devices too, not only for clients of the gateway."""
    weather: WeatherProvider = setting("open-meteo", ("worker", "gateway"))
    """Provider of the weather tool. `open-meteo` needs no key, and is free of charge for non-commercial use only.
    `off`: there is no weather tool."""
    weather_url: str = setting(
        "https://api.open-meteo.com", ("worker", "gateway"), syntax="http(s)://…, without `/v1/forecast`"
    )
    """Server of the forecasts, with the API of Open-Meteo."""
    geocoding_url: str = setting(
        "https://geocoding-api.open-meteo.com", ("worker", "gateway"), syntax="http(s)://…, without `/v1/search`"
    )
    """Server that finds places by name, with the API of Open-Meteo."""
    weather_api_key: SecretStr | None = setting(None, ("worker", "gateway"), unset="none is sent")
    """Key for both servers, for contracts with the provider."""
    location: str | None = setting(
        None,
        ("worker", "gateway"),
        syntax="`City` or `City, Region, Country`",
        unset="unknown, unless FLEET_LOCATION_URL is set",
    )
    """Location of all users of the server."""
    location_url: str | None = setting(
        None,
        ("worker", "gateway"),
        syntax="http(s)://… with `{ip}` in it once",
        unset="the server queries no service",
        masked="part",
    )
    """Service that locates public IP addresses. The server sends it each client's address."""
    characters: Path | None = setting(
        None, ("worker", "gateway"), syntax="TOML file", unset="fleet's built-in characters"
    )
    """Characters of the role-play tool, in the form of fleet/adapters/tools/characters.toml. Read at start."""
    tool_plugins: str = setting("", ("worker", "gateway"), syntax="names, separated by commas", unset="none")
    """Installed plugins whose tools the server offers. A plugin runs inside the server, with all of its rights."""
    mcp_servers: Path | None = setting(None, ("worker", "gateway"), syntax="JSON file", unset="none", masked="file")
    """MCP servers whose tools the server offers: {"mcpServers": {NAME: {"command": …} or {"url": …}}}. The file may
    hold credentials. Read at start."""

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
