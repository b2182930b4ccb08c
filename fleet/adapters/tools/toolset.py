"""The tools of this process and of MCP servers as one `ServerTools`."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from fleet.adapters.tools.tool import failed
from fleet.core.ports import ToolOffer
from fleet.core.schemas.arguments import fit
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTool
from fleet.core.toolbox import no_such_tool
from fleet.ground.tasks import isolate

if TYPE_CHECKING:
    from fleet.adapters.tools.mcp_servers import McpServers

log = logging.getLogger(__name__)

Introduce = Callable[[Persona], str]
"""Returns a tool's part of the system prompt; empty for none."""


class Toolset:
    """See `fleet.core.server_tools.ServerTools`.

    Args:
        local: The tools of this process, built-in ones and those of plugins, by their names.
        remote: The tools of MCP servers; None if there are no such servers.
        introductions: Parts of the system prompt, in order.
        seconds: Longest time of a call.
    """

    def __init__(
        self,
        local: Mapping[str, ServerTool],
        remote: "McpServers | None",
        introductions: Sequence[Introduce],
        seconds: float,
    ) -> None:
        self._local = local
        self._remote = remote
        self._introductions = introductions
        self._seconds = seconds

    @property
    def offers(self) -> Sequence[ToolOffer]:
        remote = self._remote.offers if self._remote else ()
        return (*(tool.offer for tool in self._local.values()), *remote)

    def repeatable(self, name: str) -> bool:
        tool = self._local.get(name)
        if tool is not None:
            return tool.repeatable
        return self._remote is not None and self._remote.repeatable(name)

    def introduce(self, persona: Persona) -> str:
        return " ".join(text for introduce in self._introductions if (text := introduce(persona)))

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        tool = self._local.get(name)
        if tool is None and self._remote is not None:
            return await self._remote.call(name, arguments)
        if tool is None:
            return failed(no_such_tool(name, self._local).reason.removeprefix("error: "))
        fitted = fit(tool.offer.parameters, arguments)
        if isinstance(fitted, str):
            return failed(f"not done, {fitted}")
        return await self._run(tool, fitted, caller)

    async def _run(self, tool: ServerTool, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        """Run a tool of this process; a tool of a plugin may raise any exception."""
        results: list[ServerResult] = []

        async def run() -> None:
            async with asyncio.timeout(self._seconds):
                results.append(await tool.run(arguments, caller))

        failure = await isolate(f"tool {tool.offer.name}", run(), (TimeoutError,))
        if isinstance(failure, TimeoutError):
            return failed(f"no answer within {self._seconds:g} s")
        return results[0] if failure is None else failed("the tool failed; the log of the server says why")
