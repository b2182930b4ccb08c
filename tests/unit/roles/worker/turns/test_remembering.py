"""When ended conversations are remembered, and how many at a time; what is remembered: integration/worker."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import TypeAdapter

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.core.ports import Message, TextDelta
from fleet.ground.tasks import running
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.turns.remembering import AT_ONCE, REQUEST_SECONDS, SELDOM_SECONDS, MemoryKeeper
from fleet.wire.agents import AgentDocument, CompiledAgent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage, worker_stage

MACS = [MAC, *(f"02:00:00:00:00:{number:02x}" for number in range(AT_ONCE + 1))]
ANNA = [TextDelta(json.dumps({"add": ["The user is called Anna."], "remove": []}))]
_MESSAGE = TypeAdapter(Message)


class Keeping:
    """A keeper that runs, and the conversations of its shard."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.store = stage, stage.resources.store
        self.owned: dict[int, Shard] = {}

    async def end(self, mac: str = MAC) -> None:
        """Let a conversation of one message be due now."""
        keys = self.store.keys
        line = _MESSAGE.dump_json(Message("user", "I am Anna"))
        await self.store.client.rpush(keys.history(mac), line)
        await self.store.client.hset(keys.conversation(mac), "count", "1")
        await self.store.client.zadd(keys.conversations(0), {mac: 1})

    async def waiting(self) -> int:
        return int(await self.store.client.zcard(self.store.keys.conversations(0)))


@asynccontextmanager
async def keeping(memory: str) -> AsyncIterator[Keeping]:
    async with worker_stage(memory=memory) as stage:
        one = Keeping(stage)
        async with running("memory", MemoryKeeper(stage.resources, lambda: one.owned).run):
            await elapse(0.1)
            one.owned[0] = stage.shard
            yield one


async def test_a_conversation_is_remembered_a_second_after_it_is_due() -> None:
    async with keeping("on") as one:
        await one.end()
        one.stage.llm.script = [ANNA]
        await elapse(1.0)
        assert await one.stage.resources.memories.read(MAC) == ("The user is called Anna.",)
        assert await one.waiting() == 0


async def test_without_a_memory_conversations_are_looked_for_seldom_until_an_agent_has_one() -> None:
    async with keeping("off") as one:
        await one.end()
        await elapse(SELDOM_SECONDS - 1.0)
        assert await one.waiting() == 1
        await elapse(1.0)
        assert await one.waiting() == 0
        agents = CompiledAgents(one.store)
        await agents.publish([CompiledAgent(id="1", version=1, document=AgentDocument(memory="on"))])
        await agents.set_usual("1")
        await one.stage.resources.agents.of_site(1.0)
        await elapse(SELDOM_SECONDS)
        assert one.stage.llm.asked == []
        await one.end()
        one.stage.llm.script = [ANNA]
        await elapse(1.0)
        assert await one.waiting() == 0 and len(one.stage.llm.asked) == 1


async def test_a_few_conversations_are_remembered_at_a_time_each_for_a_limited_time() -> None:
    async with keeping("on") as one:
        for mac in MACS:
            await one.end(mac)
        one.stage.llm.script = [[asyncio.Event()] for _ in range(AT_ONCE)] + [ANNA] * 2
        await elapse(REQUEST_SECONDS - 1.0)
        assert len(one.stage.llm.asked) == AT_ONCE
        await elapse(3.0)
        assert len(one.stage.llm.asked) == len(MACS)
        assert await one.waiting() == AT_ONCE, "they are tried once more"


async def test_a_shard_whose_lease_has_ended_is_left_alone() -> None:
    async with keeping("on") as one:
        one.stage.shard.lease.end()
        await one.end()
        await elapse(3.0)
        assert one.stage.llm.asked == [] and await one.waiting() == 1
