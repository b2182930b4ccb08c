from dataclasses import dataclass

from pydantic import JsonValue

from fleet.adapters.tools.beside import ToolsBeside
from fleet.adapters.tools.memory import memory_tools
from fleet.adapters.tools.toolset import Toolset
from fleet.core.memory import MemoryChanges
from fleet.core.server_tools import Caller, Persona, ServerResult

CALLER = Caller("s")


@dataclass
class Kept:
    facts: tuple[str, ...] = ()
    room: int = 3
    away: bool = False

    async def change(self, changes: MemoryChanges) -> bool:
        if self.away:
            return False
        left = tuple(fact for fact in self.facts if fact not in changes.remove)
        self.facts = (*left, *changes.add)[: self.room]
        return True


async def call(kept: Kept, name: str, **arguments: JsonValue) -> ServerResult:
    return await ToolsBeside(None, memory_tools(kept)).call(name, dict(arguments), CALLER)


async def test_what_the_user_wants_remembered_is_kept_at_once() -> None:
    kept = Kept()
    assert await call(kept, "remember", fact=" Anna likes\ntea. ") == ServerResult({"remembered": "Anna likes tea."})
    assert kept.facts == ("Anna likes tea.",)


async def test_what_is_no_fact_is_not_kept() -> None:
    kept = Kept()
    for arguments in ({"fact": "?!"}, {"fact": "x" * 201}, {"fact": ["x"]}, {}):
        result = await ToolsBeside(None, memory_tools(kept)).call("remember", dict(arguments), CALLER)
        assert result.failed
    assert kept.facts == ()


async def test_a_full_memory_and_a_lost_one_are_told() -> None:
    full = await call(Kept(("a", "b", "c")), "remember", fact="d")
    assert full.failed and "the memory is full" in str(full.value)
    for name in ("remember", "forget"):
        away = await call(Kept(("a",), away=True), name, fact="a")
        assert away.failed and "cannot reach its store" in str(away.value)


async def test_one_fact_or_everything_is_forgotten() -> None:
    kept = Kept(("a", "b", "c"))
    assert await call(kept, "forget", fact=" b ") == ServerResult({"forgotten": ["b"], "remembered_still": ["a", "c"]})
    # Repeated after the death of a worker.
    assert await call(kept, "forget", fact="b") == ServerResult({"forgotten": [], "remembered_still": ["a", "c"]})
    assert await call(kept, "forget", fact="Everything") == ServerResult(
        {"forgotten": ["a", "c"], "remembered_still": []}
    )


async def test_the_other_tools_stay() -> None:
    others = Toolset({}, None, (lambda _: "You are a pirate.",), 1.0)
    tools = ToolsBeside(others, memory_tools(Kept()))
    assert [offer.name for offer in tools.offers] == ["remember", "forget"]
    assert tools.introduce(Persona()) == "You are a pirate."
    assert (tools.repeatable("remember"), tools.repeatable("forget"), tools.repeatable("x")) == (True, True, False)
    for one in (tools, ToolsBeside(None, memory_tools(Kept()))):
        assert (await one.call("x", {}, CALLER)).failed
    assert ToolsBeside(None, memory_tools(Kept())).introduce(Persona()) == ""
