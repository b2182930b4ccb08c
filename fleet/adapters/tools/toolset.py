"""Built-in tools and those of MCP servers as one set."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from fleet.adapters.tools.tool import BuiltIn, failed
from fleet.core.ports import ToolOffer
from fleet.core.schemas.arguments import fit
from fleet.core.server_tools import Caller, Persona, ServerResult
from fleet.core.toolbox import no_such_tool

if TYPE_CHECKING:
    from fleet.adapters.tools.mcp_servers import McpServers

log = logging.getLogger(__name__)

Introduce = Callable[[Persona], str]
"""Returns what a tool adds to the system prompt; empty for nothing."""


class Toolset:
    """See `fleet.core.server_tools.ServerTools`.

    Args:
        built_in: By their names.
        remote: Those of MCP servers; None where there are none.
        introductions: What the system prompt says, in order.
        seconds: Longest time of a call.
    """

    def __init__(
        self,
        built_in: Mapping[str, BuiltIn],
        remote: "McpServers | None",
        introductions: Sequence[Introduce],
        seconds: float,
    ) -> None:
        self._built_in = built_in
        self._remote = remote
        self._introductions = introductions
        self._seconds = seconds

    @property
    def offers(self) -> Sequence[ToolOffer]:
        remote = self._remote.offers if self._remote else ()
        return (*(tool.offer for tool in self._built_in.values()), *remote)

    def repeatable(self, name: str) -> bool:
        return name in self._built_in or (self._remote is not None and self._remote.repeatable(name))

    def introduce(self, persona: Persona) -> str:
        return " ".join(text for introduce in self._introductions if (text := introduce(persona)))

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        tool = self._built_in.get(name)
        if tool is None and self._remote is not None:
            return await self._remote.call(name, arguments)
        if tool is None:
            return failed(no_such_tool(name, self._built_in).reason.removeprefix("error: "))
        fitted = fit(tool.offer.parameters, arguments)
        if isinstance(fitted, str):
            return failed(f"not done, {fitted}")
        try:
            async with asyncio.timeout(self._seconds):
                return await tool.run(fitted, caller)
        except TimeoutError:
            return failed(f"no answer within {self._seconds:g} s")
