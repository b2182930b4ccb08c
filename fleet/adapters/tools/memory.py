"""The tools by which the model keeps and deletes facts about the users of a device at once."""

from collections.abc import Sequence

from pydantic import JsonValue

from fleet.adapters.tools.beside import NO_STORE
from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.memory import LARGEST, LONGEST, MOST, Memory, MemoryChanges, clean
from fleet.core.server_tools import Caller, ServerResult, ServerTool

_FACT: dict[str, JsonValue] = {"type": "string", "maxLength": LONGEST, "required": True}


def memory_tools(memory: Memory) -> Sequence[ServerTool]:
    """Return `remember` and `forget` for the device whose turn this is."""

    async def remember(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        fact = clean(text_of(arguments, "fact"))
        if not fact:
            return failed("not done, a fact is one sentence with words")
        if not await memory.change(MemoryChanges(add=(fact,))):
            return failed(NO_STORE)
        if fact not in memory.facts:
            return failed(f"not done, the memory is full ({MOST} facts, {LARGEST} bytes); ask what may be forgotten")
        return ServerResult({"remembered": fact})

    async def forget(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        wanted, known = text_of(arguments, "fact"), memory.facts
        gone = known if wanted.casefold() == "everything" else tuple(one for one in known if one == clean(wanted))
        if gone and not await memory.change(MemoryChanges(remove=gone)):
            return failed(NO_STORE)
        # A call that is repeated after the death of a worker finds nothing, which is no failure.
        return ServerResult({"forgotten": list(gone), "remembered_still": list(memory.facts)})

    return (
        built_in(
            "remember",
            "Remember a fact about the user for later conversations. Use it only when the user asks you to "
            "remember something.",
            remember,
            repeatable=True,
            fact={**_FACT, "description": "The fact as one sentence in the user's language, dates in full."},
        ),
        built_in(
            "forget",
            "Forget facts that you remember. Use it only when the user asks you to forget something.",
            forget,
            repeatable=True,
            fact={**_FACT, "description": "One of the facts that you know, word by word; `everything` for all."},
        ),
    )
