"""Configurations of MCP servers that are programs of the tests, and waiting for their tools."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fleet.core.server_tools import ServerTools
from tests.support.process import ServerProcess

_HERE = Path(__file__).parent
_TOOLS = str(_HERE / "mcp_tool_server.py")
PATIENCE = 240.0


def tool_program(counter: Path, **env: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [_TOOLS, "stdio"], "env": {"COUNTER": str(counter), **env}}


def rude_program(vice: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(_HERE / "mcp_rude_server.py"), vice]}


def tool_server(port: int, folder: Path, *answers: str) -> ServerProcess:
    """Return a server over streamable HTTP that is not yet started; with `json` it answers so, not with events."""
    command = [sys.executable, _TOOLS, "http", str(port), *answers]
    return ServerProcess(command, port, folder / "mcp.log", {"COUNTER": str(folder / "counter")})


def write_servers(path: Path, **servers: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def names(tools: ServerTools) -> set[str]:
    return {offer.name for offer in tools.offers}


async def until_offered(tools: ServerTools, *wanted: str, gone: bool = False) -> None:
    """Wait until these tools are offered, or none of them is."""
    async with asyncio.timeout(PATIENCE):
        while not (set(wanted).isdisjoint(names(tools)) if gone else set(wanted) <= names(tools)):
            await asyncio.sleep(0.02)
