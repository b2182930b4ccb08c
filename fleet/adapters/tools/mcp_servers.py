"""The tools of all connected MCP servers, under unique names."""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence

from pydantic import JsonValue

from fleet.adapters.tools.mcp_config import Server
from fleet.adapters.tools.mcp_server import McpOptions, McpServer, RemoteTool
from fleet.adapters.tools.tool import failed
from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.server_tools import ServerResult
from fleet.core.toolbox import PROGRAM, Refusal, Toolbox

log = logging.getLogger(__name__)


class McpServers:
    """All servers; each connects and reconnects independently.

    Args:
        servers: By their names in the configuration.
        options: Of their connections.
        taken: Names of other tools.
    """

    def __init__(self, servers: Mapping[str, Server], options: McpOptions, taken: Collection[str]) -> None:
        self._servers = {name: McpServer(name, server, options) for name, server in servers.items()}
        self._taken = taken
        self._listed: tuple[tuple[RemoteTool, ...], ...] = ()
        self._box = _RemoteToolbox(())

    async def run(self) -> None:
        """Keep them connected until cancelled."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers.values():
                group.create_task(server.run(), name=f"MCP server {server.name}")

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """The tools of the connected servers, named `SERVER_TOOL`."""
        return self._current().offers

    def repeatable(self, name: str) -> bool:
        """Whether the server declares that a tool changes nothing."""
        server, tool = _part(self._current().origin(name))
        return any(one.reads_only for one in self._tools_of(server) if one.spec.name == tool)

    async def call(self, name: str, arguments: dict[str, JsonValue]) -> ServerResult:
        """Run a tool by its name in `offers`; failures are results."""
        prepared = self._current().prepare(ToolCall("", name, json.dumps(arguments)))
        if isinstance(prepared, Refusal):
            return failed(prepared.reason.removeprefix("error: "))
        server, tool = _part(prepared.tool.name)
        return await self._servers[server].call(tool, prepared.arguments)

    def _tools_of(self, server: str) -> Sequence[RemoteTool]:
        return self._servers[server].tools if server in self._servers else ()

    def _current(self) -> "_RemoteToolbox":
        listed = tuple(server.tools for server in self._servers.values())
        if listed != self._listed:
            specs = [
                one.spec.model_copy(update={"name": f"{server.name}/{one.spec.name}"})
                for server in self._servers.values()
                for one in server.tools
            ]
            self._listed, self._box = listed, _RemoteToolbox(specs, self._taken, PROGRAM)
            if self._box.left_out:
                log.warning("too many tools of MCP servers to offer", extra={"left_out": self._box.left_out})
        return self._box


class _RemoteToolbox(Toolbox):
    def origin(self, name: str) -> str:
        """Return the `server/tool` of an offered name; empty if there is none."""
        tool = self._tools.get(name)
        return tool.name if tool else ""


def _part(origin: str) -> tuple[str, str]:
    """Return server and tool; names of servers contain no slash (`mcp_config`)."""
    server, _, tool = origin.partition("/")
    return server, tool
