"""Ask first, with the real turn and journal: the model asks for a restart, and the user's next words decide."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.redis.sessions.conversations import Begun, Opening
from fleet.core.ports import CallsAsked, LlmEvent, Message, TextDelta, ToolCall
from fleet.core.rates import Rate
from fleet.core.tool_gate import DENIED, NO_VOICE, WAITS
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.agents import AgentDocument, CompiledAgent
from fleet.wire.edge_messages import EndAnswerCommand, SpeakSentenceCommand, UtteranceEvent
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import ResponseEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage, worker_stage

OVEN = ToolSpec(name="self.oven.heat", input_schema={"type": "object", "properties": {"to": {"type": "integer"}}})
LAMP = ToolSpec(name="self.lamp.turn_on")
SECRET = (ToolSpec(name="self.board.erase", user_only=True), ToolSpec(name="self.reboot"))
"""For users only: the device says so of one, the other has the name of such a tool of firmware."""
ASKS: list[LlmEvent] = [CallsAsked((ToolCall("c1", "oven_heat", '{"to":200}'),))]
SAYS: list[LlmEvent] = [TextDelta("As you say.")]
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "hot"}]}


class Kitchen:
    """A device with an oven, and the turns of its session."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage = stage
        self.calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
        self.entry = 0

    @property
    def requests(self) -> list[Any]:
        return [one["payload"] for one in self.stage.sent() if one["type"] == "mcp"]

    def spoken(self, turn: str) -> str:
        commands = [one for one in self.stage.edge_commands() if isinstance(one, SpeakSentenceCommand)]
        return " ".join(one.text for one in commands if one.turn == turn)

    async def begin(self, turn: str, text: str, **heard: Any) -> WorkerTurn:
        self.entry += 1
        opening = Opening(
            "" if heard.get("typed") else "s1", turn, Message("user", text), f"{self.stage._began}-{self.entry}"
        )
        begun = await self.stage.resources.conversations.begin(self.stage.shard.owner, MAC, opening, 60, 20)
        assert isinstance(begun, Begun), begun
        words = {"device": MAC, "session": opening.session, "turn": turn, "text": text, "language": "en"}
        event = UtteranceEvent(**words | heard)
        return WorkerTurn(self.stage.resources, self.calls, self.stage.shard, begun, event)

    async def run(self, turn: WorkerTurn) -> None:
        """Run a turn; the oven answers every call."""
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self.serve())
            await turn.run()
            serving.cancel()

    async def serve(self) -> None:
        answered = len(self.requests)
        while True:
            for request in self.requests[answered:]:
                answered += 1
                await self.calls.answer(self.stage.shard, MAC, ResponseEvent(str(request["id"]), DONE))
            await elapse(0.01)

    async def ask(self, *then: Sequence[LlmEvent]) -> None:
        """Let the model ask for a call in the turn `t1`; `then` are its messages in the next turns."""
        self.stage.llm.script = [ASKS, *map(list, then)]
        await (await self.begin("t1", "heat the oven")).run()


@pytest.fixture
async def kitchen() -> AsyncIterator[Kitchen]:
    async with worker_stage(tool_policy="ask dangerous") as stage:
        await stage.connect()
        await stage.open("s1")
        await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (OVEN, *SECRET))
        yield Kitchen(stage)


async def test_a_call_waits_and_runs_after_the_users_yes(kitchen: Kitchen) -> None:
    await kitchen.ask(SAYS)
    assert kitchen.spoken("t1") == "Should I really do this: oven heat, to 200? Please say yes or no."
    assert isinstance(kitchen.stage.edge_commands()[-1], EndAnswerCommand)
    assert kitchen.requests == [], "nothing is called before"
    await kitchen.run(await kitchen.begin("t2", "Yes, please.", heard="t1", pause_ms=900))
    assert [one["params"] for one in kitchen.requests] == [{"name": OVEN.name, "arguments": {"to": 200}}]
    assert kitchen.spoken("t2") == "As you say."
    asked = kitchen.stage.llm.asked[-1][0]
    assert [one.text for one in asked if one.role == "tool"] == [WAITS, "hot"]
    assert [offer.name for offer in kitchen.stage.llm.asked[0][1]] == ["oven_heat"], "no tool for users only"
    kitchen.stage.llm.script = [SAYS]
    await kitchen.run(await kitchen.begin("t3", "yes", heard="t2", pause_ms=100))
    assert len(kitchen.requests) == 1, "a yes counts once"


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("No.", {"heard": "t1"}),
        ("Yes, but not now.", {"heard": "t1"}),
        ("What time is it?", {"heard": "t1"}),
        ("Yes.", {"heard": "t1", "pause_ms": 20_001}),
        ("Yes.", {}),
        ("Yes.", {"heard": "t0"}),
        ("Yes.", {"heard": "t1", "typed": True}),
        ("Yes.", {"heard": "t1", "session": "s0"}),
    ],
)
async def test_everything_else_is_a_no_and_the_model_is_told(
    kitchen: Kitchen, text: str, heard: dict[str, Any]
) -> None:
    await kitchen.ask(SAYS, SAYS)
    await kitchen.run(await kitchen.begin("t2", text, **heard))
    assert kitchen.requests == []
    assert "no clear yes to the call of oven_heat" in kitchen.stage.llm.asked[-1][0][-1].text
    await kitchen.run(await kitchen.begin("t3", "Yes.", heard="t1"))
    assert kitchen.requests == [], "only the next utterance decides"


async def test_the_wait_survives_the_worker_that_asked_and_the_call_runs_once(kitchen: Kitchen) -> None:
    await kitchen.ask(SAYS, SAYS)
    dead = await kitchen.begin("t2", "Yes.", heard="t1")  # its worker dies before it has done anything
    del dead
    kitchen.entry -= 1
    running = asyncio.ensure_future((await kitchen.begin("t2", "Yes.", heard="t1")).run())
    while not kitchen.requests:
        await elapse(0.01)
    running.cancel()  # and this one after it has published the call
    await asyncio.wait([running])
    kitchen.entry -= 1
    again = await kitchen.begin("t2", "Yes.", heard="t1")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(again.run())
        await elapse(0.1)
        await kitchen.calls.answer(kitchen.stage.shard, MAC, ResponseEvent(str(kitchen.requests[0]["id"]), DONE))
        await task
    assert len(kitchen.requests) == 1
    assert kitchen.stage.llm.asked[-1][0][-1].text == "hot"


async def test_without_a_session_nobody_can_be_asked(kitchen: Kitchen) -> None:
    await kitchen.stage.resources.sessions.close(kitchen.stage.shard.owner, MAC, "s1", "device")
    kitchen.stage.llm.script = [ASKS, SAYS]
    await (await kitchen.begin("t1", "heat", typed=True)).run()
    assert kitchen.stage.llm.asked[-1][0][-1].text == NO_VOICE


async def test_a_denied_tool_is_neither_offered_nor_called() -> None:
    async with worker_stage(tool_policy="deny self.oven.*") as stage:
        await stage.connect()
        await stage.open("s1")
        await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (OVEN,))
        kitchen = Kitchen(stage)
        await kitchen.ask(SAYS)
        assert stage.llm.asked[0][1] == ()
        assert stage.llm.asked[-1][0][-1].text == DENIED
        assert kitchen.requests == []


async def test_a_text_of_who_may_not_call_dangerous_tools_lets_the_model_call_none() -> None:
    async with worker_stage() as stage:
        await stage.connect()
        await stage.resources.tools.register(stage.shard.owner, MAC, "xiaozhi", (LAMP, OVEN))
        kitchen = Kitchen(stage)
        stage.llm.script = [ASKS, SAYS]
        await kitchen.run(await kitchen.begin("t1", "heat the oven", typed=True, no_dangerous_tools=True))
        assert [offer.name for offer in stage.llm.asked[0][1]] == ["lamp_turn_on"]
        assert stage.llm.asked[-1][0][-1].text == DENIED
        assert kitchen.requests == []
        stage.llm.script = [ASKS, SAYS]
        await kitchen.run(await kitchen.begin("t2", "heat the oven", typed=True))
        assert len(kitchen.requests) == 1, "of who may"


async def test_the_policy_of_the_agent_counts_from_the_next_turn_on(kitchen: Kitchen) -> None:
    agents = CompiledAgents(kitchen.stage.resources.store)

    async def publish(version: int, policy: str) -> None:
        document = AgentDocument(tool_policy=policy)
        await agents.publish([CompiledAgent(id="a", version=version, document=document)])
        await agents.set_usual("a")

    await publish(1, "deny self.oven.*")
    await kitchen.ask(SAYS)
    assert kitchen.stage.llm.asked[0][1] == (), "the settings would ask first"
    await publish(2, "")
    kitchen.stage.llm.script = [ASKS, SAYS]
    await kitchen.run(await kitchen.begin("t2", "heat it"))
    assert len(kitchen.requests) == 1
