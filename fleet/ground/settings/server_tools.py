"""The settings of tools that run on the server."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, SecretStr, field_validator

from fleet.ground.settings.fields import setting

WeatherSource = Literal["open-meteo", "off"]
"""Who tells the weather."""


class ServerSide(BaseModel):
    """What the model may call beside the tools of devices and clients. Workers and gateways should have the same."""

    device_server_tools: bool = setting(
        True, "Whether the model may call the server's tools for voice devices too, not only for clients.", ("worker",)
    )
    weather: WeatherSource = setting(
        "open-meteo",
        "Who tells the weather. `open-meteo` needs no key, and is free of charge for non-commercial use only. `off`: "
        "the tool is not offered.",
        ("worker", "gateway"),
    )
    weather_url: str = setting(
        "https://api.open-meteo.com",
        "Server of the forecasts, one that answers as Open-Meteo does.",
        ("worker", "gateway"),
        form="http(s)://…, without `/v1/forecast`",
    )
    geocoding_url: str = setting(
        "https://geocoding-api.open-meteo.com",
        "Server that finds places by their names, one that answers as Open-Meteo does.",
        ("worker", "gateway"),
        form="http(s)://…, without `/v1/search`",
    )
    weather_api_key: SecretStr | None = setting(
        None, "Key for both servers, for whoever has a contract.", ("worker", "gateway"), without="none is sent"
    )
    location: str | None = setting(
        None,
        "Where the server's users are, all of them.",
        ("worker", "gateway"),
        form="`City` or `City, Region, Country`",
        without="not known, but for FLEET_LOCATION_URL",
    )
    location_url: str | None = setting(
        None,
        "Service that knows where public addresses are; it is told each client's address.",
        ("worker", "gateway"),
        form="http(s)://… with `{ip}` in it once",
        without="nobody is asked",
        hidden="part",
    )
    characters: Path | None = setting(
        None,
        "Characters of the role play, in the form of fleet/adapters/tools/characters.toml. Read at start.",
        ("worker", "gateway"),
        form="TOML file",
        without="a few of fleet's own",
    )
    tool_plugins: str = setting(
        "",
        "Installed plugins whose tools are offered. A plugin runs inside the server, with all of its rights.",
        ("worker", "gateway"),
        form="names, separated by commas",
        without="none",
    )
    mcp_servers: Path | None = setting(
        None,
        'MCP servers whose tools are offered: {"mcpServers": {NAME: {"command": …} or {"url": …}}}. It may hold '
        "logins. Read at start.",
        ("worker", "gateway"),
        form="JSON file",
        without="none",
        hidden="file",
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
