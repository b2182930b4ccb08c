"""What an agent changes in the next turn of a device, on a worker that goes on."""

from typing import Any

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.tools.languages import LANGUAGES
from fleet.core.memory import MemoryChanges
from fleet.core.ports import TextDelta
from fleet.core.rates import Rate
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.turns.turn import WorkerTurn
from fleet.wire.agents import AgentDocument, CompiledAgent
from fleet.wire.edge_messages import SpeakSentenceCommand, StartAnswerCommand, UtteranceEvent
from tests.support.worker_stage import MAC, WorkerStage


class Talk:
    """A device with an agent."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage = stage
        self.agents = CompiledAgents(stage.resources.store)
        self.turns = 0

    async def publish(self, **fields: Any) -> CompiledAgent:
        """Publish the next version of the site's agent."""
        document = AgentDocument.model_validate(fields)
        agent = CompiledAgent(id="1", version=self.turns, document=document)
        await self.agents.publish([agent])
        await self.agents.set_usual("1")
        return agent

    async def ask(self) -> tuple[str, Any]:
        """Return the system prompt and the options of a turn's request."""
        self.turns += 1
        turn, stage = f"t{self.turns}", self.stage
        stage.llm.script = [[TextDelta("Well. ")]]
        heard = UtteranceEvent(device=MAC, session="s1", turn=turn, text=f"words {self.turns}")
        calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 5), stage.counts)
        await WorkerTurn(stage.resources, calls, stage.shard, await stage.begin(turn, heard.text), heard).run()
        messages, _ = stage.llm.asked[-1]
        return messages[0].text, stage.llm.options[-1]

    async def life(self) -> int:
        store = self.stage.resources.store
        return int(await store.client.ttl(store.keys.history(MAC)))


async def test_each_field_counts_from_the_next_turn_on(stage: WorkerStage) -> None:
    await stage.open("s1")
    talk = Talk(stage)
    usual, _ = await talk.ask()

    async def prompt(fields: dict[str, Any]) -> str:
        await talk.publish(**fields)
        return (await talk.ask())[0]

    assert "You are a pirate" in await prompt({"prompt": "You are a pirate."})
    assert LANGUAGES["zh"][0] in await prompt({"language": "zh"})
    await talk.publish(chat={"temperature": 0.25, "max_tokens": 9})
    _, options = await talk.ask()
    assert (options.temperature, options.max_tokens) == (0.25, 9)
    assert len(stage.llm.asked[-1][0]) > 2
    await talk.publish(history_messages=0, history_seconds=7000)
    await talk.ask()
    assert len(stage.llm.asked[-1][0]) == 2
    assert 6900 < await talk.life() <= 7000
    assert await prompt({}) == usual
    assert await talk.life() <= 3600


async def test_an_agent_remembers_where_the_settings_do_not(stage: WorkerStage) -> None:
    await stage.open("s1")
    talk = Talk(stage)
    await stage.resources.memories.change(stage.shard.owner, MAC, MemoryChanges(("The cat is called Tom.",)))
    assert "Tom" not in (await talk.ask())[0]
    await talk.publish(memory="on")
    assert "Tom" in (await talk.ask())[0]
    assert [offer.name for offer in stage.llm.asked[-1][1]] == ["remember", "forget"]
    assert stage.resources.agents.remembers


async def test_the_edge_is_told_whose_voice_speaks(stage: WorkerStage) -> None:
    await stage.open("s1")
    talk = Talk(stage)
    await talk.ask()
    agent = await talk.publish(voice={"name": "zm_yunxi"})
    await talk.ask()
    named = [one.agent for one in stage.edge_commands() if isinstance(one, StartAnswerCommand | SpeakSentenceCommand)]
    assert named == ["", "", agent.digest, agent.digest]
