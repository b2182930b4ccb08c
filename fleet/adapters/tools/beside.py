"""Tools of one device's turn beside the server's other tools."""

from collections.abc import Sequence

from pydantic import JsonValue

from fleet.adapters.tools.tool import failed
from fleet.core.ports import ToolOffer
from fleet.core.schemas.arguments import fit
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTool, ServerTools

NO_STORE = "not done, the server cannot reach its store"


class ToolsBeside:
    """A few tools beside a server's other tools; see `fleet.core.server_tools.ServerTools`.

    Args:
        others: The other tools; None if there are none.
        own: Tools that know the device whose turn this is; they fail by results, never by exceptions.
    """

    def __init__(self, others: ServerTools | None, own: Sequence[ServerTool]) -> None:
        self._others = others
        self._own = {tool.offer.name: tool for tool in own}

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return (*(tool.offer for tool in self._own.values()), *(self._others.offers if self._others else ()))

    def repeatable(self, name: str) -> bool:
        own = self._own.get(name)
        if own is not None:
            return own.repeatable
        return self._others is not None and self._others.repeatable(name)

    def introduce(self, persona: Persona) -> str:
        return self._others.introduce(persona) if self._others else ""

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        tool = self._own.get(name)
        if tool is None:
            return await self._others.call(name, arguments, caller) if self._others else failed("no such tool")
        fitted = fit(tool.offer.parameters, arguments)
        return failed(f"not done, {fitted}") if isinstance(fitted, str) else await tool.run(fitted, caller)
