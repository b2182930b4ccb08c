import asyncio
from typing import Any

from fleet.core.agent import Progress
from fleet.core.ports import Message, ToolCall, ToolOffer
from fleet.core.server_tools import Caller, Persona, ServerResult
from fleet.ground.errors import Unavailable
from fleet.roles.worker.calls.server_calls import ServerCalls


class Tools:
    """Server tools, of which one changes the persona."""

    offers = (ToolOffer("become", "", {"type": "object", "properties": {}}),)

    def __init__(self) -> None:
        self.called: list[str] = []

    def introduce(self, persona: Persona) -> str:
        return ""

    def repeatable(self, name: str) -> bool:
        return False

    async def call(self, name: str, arguments: Any, caller: Caller) -> ServerResult:
        self.called.append(name)
        caller.persona = Persona("de", "pirate")
        return ServerResult("Arr")


class NoDevice:
    offers = ()

    async def call(self, call: ToolCall) -> str:
        raise AssertionError(call)


def calls(tools: Tools, saved: list[Persona], *, away: bool = False) -> tuple[ServerCalls, Caller]:
    async def save(persona: Persona) -> None:
        await asyncio.sleep(0)
        if away:
            raise Unavailable("away")
        saved.append(persona)

    caller = Caller("s1", timezone_offset=0, persona=Persona())
    return ServerCalls(tools, save, caller), caller  # type: ignore[arg-type]


async def test_a_new_persona_is_stored_before_the_model_gets_the_result() -> None:
    saved: list[Persona] = []
    own, caller = calls(Tools(), saved)
    mix = own.mix_with(NoDevice(), Progress())
    assert await mix.call(ToolCall("c1", "become", "{}")) == "Arr"
    assert saved == [caller.persona] == [Persona("de", "pirate")]


async def test_a_persona_that_cannot_be_stored_is_not_taken_on() -> None:
    saved: list[Persona] = []
    own, caller = calls(Tools(), saved, away=True)
    answer = await own.mix_with(NoDevice(), Progress()).call(ToolCall("c1", "become", "{}"))
    assert "not done" in answer and caller.persona == Persona()


async def test_what_another_worker_may_have_called_is_not_called_again() -> None:
    tools = Tools()
    own, _ = calls(tools, [])
    before = Progress((Message("assistant", "", calls=(ToolCall("c1", "become", "{}"),)),))
    await own.mix_with(NoDevice(), before).call(ToolCall("c1", "become", "{}"))
    assert tools.called == []
