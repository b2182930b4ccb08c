"""The server's tools, from the settings."""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from fleet.adapters.plugins import load_plugin
from fleet.adapters.tools.clock import Zones, clock_tool
from fleet.adapters.tools.json_source import JsonSource
from fleet.adapters.tools.languages import introduce_language, language_tools
from fleet.adapters.tools.location import Locator
from fleet.adapters.tools.mcp_config import Server, read_servers
from fleet.adapters.tools.role_play import RolePlay, read_characters
from fleet.adapters.tools.toolset import Toolset
from fleet.adapters.tools.weather import weather_tool
from fleet.adapters.tools.weather_open_meteo import OpenMeteo
from fleet.core.ports import ProviderOptions
from fleet.core.server_tools import ServerTool, ServerTools, ToolFactory
from fleet.ground.errors import ConfigError
from fleet.ground.settings.server_tools import WeatherProvider
from fleet.ground.tasks import running

if TYPE_CHECKING:
    from fleet.adapters.tools.mcp_servers import McpServers

SOURCE_SECONDS = 4.0
"""Longest request to a public service. A tool makes up to two of them within the time limit of its call."""


@dataclass(frozen=True, slots=True)
class ServerToolSettings:
    """The settings of the server's tools."""

    mcp_enabled: bool
    mcp_server_name: str
    mcp_protocol_version: str
    weather: WeatherProvider
    weather_url: str
    geocoding_url: str
    weather_api_key: SecretStr | None
    location: str | None
    location_url: str | None
    characters: Path | None
    mcp_servers: Path | None
    tool_seconds: float
    tool_plugins: str


@asynccontextmanager
async def open_tools(settings: ServerToolSettings) -> AsyncIterator[ServerTools]:
    """Yield the tools. MCP servers connect in the background; their tools appear when they are connected.

    Args:
        settings: Of the process. Without MCP_ENABLED there are no tools.

    Raises:
        ConfigError: The file of FLEET_CHARACTERS or FLEET_MCP_SERVERS, or a plugin of FLEET_TOOL_PLUGINS, is missing or
            invalid.
    """
    if not settings.mcp_enabled:
        yield Toolset({}, None, (), settings.tool_seconds)
        return
    role_play = RolePlay(read_characters(settings.characters))
    servers = read_servers(settings.mcp_servers)
    async with AsyncExitStack() as stack:
        source = JsonSource(SOURCE_SECONDS)
        stack.push_async_callback(source.aclose)
        tools = {tool.offer.name: tool for tool in _built_in(settings, source, role_play)}
        for name in filter(None, map(str.strip, settings.tool_plugins.split(","))):
            _add(tools, name, await stack.enter_async_context(_plugin(name, settings)))
        remote = await stack.enter_async_context(_connect(settings, servers, tools)) if servers else None
        yield Toolset(tools, remote, (introduce_language, role_play.introduce), settings.tool_seconds)


@asynccontextmanager
async def _connect(
    settings: ServerToolSettings, servers: Mapping[str, Server], taken: Collection[str]
) -> AsyncIterator["McpServers"]:
    # Imported here, because the SDK costs a second and 30 MB, which a server without MCP servers can save.
    from fleet.adapters.tools.mcp_server import McpOptions
    from fleet.adapters.tools.mcp_servers import McpServers

    # The SDK's own log lines contain answers of servers, and repeat what fleet logs.
    for name in ("mcp", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    options = McpOptions(settings.tool_seconds, settings.mcp_server_name, settings.mcp_protocol_version)
    remote = McpServers(servers, options, taken)
    async with running("MCP servers", remote.run):
        yield remote


def _plugin(name: str, settings: ServerToolSettings) -> AbstractAsyncContextManager[Sequence[ServerTool]]:
    factory: ToolFactory = load_plugin("FLEET_TOOL_PLUGINS", name, "fleet.tools")
    return factory(ProviderOptions(seconds=settings.tool_seconds))


def _add(tools: dict[str, ServerTool], plugin: str, more: Sequence[ServerTool]) -> None:
    for tool in more:
        if tool.offer.name in tools:
            raise ConfigError(f"FLEET_TOOL_PLUGINS: {plugin!r} has a tool {tool.offer.name!r}, which is there already")
        tools[tool.offer.name] = tool


def _built_in(settings: ServerToolSettings, source: JsonSource, role_play: RolePlay) -> tuple[ServerTool, ...]:
    locator = Locator(settings.location, settings.location_url, source)
    key = settings.weather_api_key.get_secret_value() if settings.weather_api_key else None
    weather = OpenMeteo(source, settings.weather_url, settings.geocoding_url, key, _now)
    return (
        *(() if settings.weather == "off" else (weather_tool(weather, locator.place_of),)),
        clock_tool(Zones(), _now),
        locator.tool(),
        *language_tools(),
        *role_play.tools(),
    )


def _now() -> datetime:
    return datetime.now(UTC)
