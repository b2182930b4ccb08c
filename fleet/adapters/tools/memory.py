"""The tools by which the model keeps and deletes facts about the users of a device at once."""

from collections.abc import Sequence

from pydantic import JsonValue

from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.memory import LARGEST, LONGEST, MOST, Memory, MemoryChanges, clean
from fleet.core.ports import ToolOffer
from fleet.core.schemas.arguments import fit
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTool, ServerTools

_NO_STORE = "not done, the server cannot reach its store"
_FACT: dict[str, JsonValue] = {"type": "string", "maxLength": LONGEST, "required": True}


class MemoryTools:
    """`remember` and `forget` beside a server's other tools; see `fleet.core.server_tools.ServerTools`.

    Args:
        others: The other tools; None if there are none.
        memory: Of the device whose turn this is.
    """

    def __init__(self, others: ServerTools | None, memory: Memory) -> None:
        self._others = others
        self._memory = memory
        self._own: dict[str, ServerTool] = {tool.offer.name: tool for tool in self._tools()}

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return (*(tool.offer for tool in self._own.values()), *(self._others.offers if self._others else ()))

    def repeatable(self, name: str) -> bool:
        return name in self._own or (self._others is not None and self._others.repeatable(name))

    def introduce(self, persona: Persona) -> str:
        return self._others.introduce(persona) if self._others else ""

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        tool = self._own.get(name)
        if tool is None:
            return await self._others.call(name, arguments, caller) if self._others else failed("no such tool")
        fitted = fit(tool.offer.parameters, arguments)
        return failed(f"not done, {fitted}") if isinstance(fitted, str) else await tool.run(fitted, caller)

    def _tools(self) -> Sequence[ServerTool]:
        return (
            built_in(
                "remember",
                "Remember a fact about the user for later conversations. Use it only when the user asks you to "
                "remember something.",
                self._remember,
                repeatable=True,
                fact={**_FACT, "description": "The fact as one sentence in the user's language, dates in full."},
            ),
            built_in(
                "forget",
                "Forget facts that you remember. Use it only when the user asks you to forget something.",
                self._forget,
                repeatable=True,
                fact={**_FACT, "description": "One of the facts that you know, word by word; `everything` for all."},
            ),
        )

    async def _remember(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        fact = clean(text_of(arguments, "fact"))
        if not fact:
            return failed("not done, a fact is one sentence with words")
        if not await self._memory.change(MemoryChanges(add=(fact,))):
            return failed(_NO_STORE)
        if fact not in self._memory.facts:
            return failed(f"not done, the memory is full ({MOST} facts, {LARGEST} bytes); ask what may be forgotten")
        return ServerResult({"remembered": fact})

    async def _forget(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        wanted, known = text_of(arguments, "fact"), self._memory.facts
        gone = known if wanted.casefold() == "everything" else tuple(one for one in known if one == clean(wanted))
        if gone and not await self._memory.change(MemoryChanges(remove=gone)):
            return failed(_NO_STORE)
        # A call that is repeated after the death of a worker finds nothing, which is no failure.
        return ServerResult({"forgotten": list(gone), "remembered_still": list(self._memory.facts)})
