"""Remember conversations that have ended: ask the model which facts of each are worth keeping."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from fleet.adapters.redis.devices.memories import EndedConversation
from fleet.core.memory import LONGEST_ANSWER, MemoryChanges, ask_changes, read_changes
from fleet.core.ports import LlmOptions, Message, TextDelta
from fleet.core.prompt import local_now
from fleet.ground.errors import FleetError
from fleet.ground.local_time import own_offset
from fleet.ground.log import fields
from fleet.ground.tasks import Backoff, keep_running
from fleet.ground.tracing import spans
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.turns.turn_agent import TurnAgent

log = logging.getLogger(__name__)

AT_ONCE: Final = 4
"""Most requests of one worker at a time: they must not delay answers. Other conversations wait in Redis."""
REQUEST_SECONDS: Final = 30.0
"""Longest time to remember one conversation; less than the time until it is claimed again."""
CHECK_SECONDS: Final = 1.0
SELDOM_SECONDS: Final = 15.0
"""The same while no agent is known that remembers."""


class MemoryKeeper:
    """Remembers the conversations of the devices of the owned shards.

    A conversation is claimed before the model is asked. If this worker dies, or the model fails or answers badly, it is
    claimed once more a minute later, by whoever owns the shard then.

    Args:
        resources: Of the worker.
        owned: Returns the shards that this worker owns now.
    """

    def __init__(self, resources: WorkerResources, owned: Callable[[], Mapping[int, Shard]]) -> None:
        self._resources = resources
        self._memories = resources.memories
        self._owned = owned
        self._running = 0

    async def run(self) -> None:
        """Check until cancelled."""
        backoff = Backoff(limit=5.0)
        await keep_running("memory", lambda: self._repeat(backoff), backoff)

    async def _repeat(self, backoff: Backoff) -> None:
        while True:
            shards = list(self._owned().values())
            # No shard with a long queue may always be the first.
            for shard in random.sample(shards, len(shards)):
                if self._running < AT_ONCE and shard.connected and shard.held:
                    await self._claim(shard)
            backoff.reset()
            often = self._resources.settings.memory == "on" or self._resources.agents.remembers
            await asyncio.sleep(CHECK_SECONDS if often else SELDOM_SECONDS)

    async def _claim(self, shard: Shard) -> None:
        try:
            for ended in await self._memories.claim(shard.owner, shard.number, AT_ONCE - self._running):
                task = shard.spawn(f"memory {ended.mac}", self._remember(shard, ended))
                self._running += 1
                task.add_done_callback(self._end)
        except FleetError as error:
            log.warning("conversations not claimed", extra={"shard": shard.number, "reason": str(error)})

    def _end(self, _: asyncio.Task[object]) -> None:
        self._running -= 1

    async def _remember(self, shard: Shard, ended: EndedConversation) -> None:
        with fields(device=ended.mac), spans.span("memory", {"fleet.device": ended.mac}):
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._review(shard, ended)
            except (FleetError, TimeoutError) as error:
                log.warning("conversation not remembered", extra={"reason": str(error) or "no answer in time"})

    async def _review(self, shard: Shard, ended: EndedConversation) -> None:
        messages, changes = await self._memories.messages(ended), MemoryChanges()
        asked = await self._resources.conversations.context(ended.mac, 0)
        agent = await TurnAgent.find(self._resources, asked.agent)
        if agent.remembers and any(message.role == "user" for message in messages):
            offset = own_offset(asked.timezone, self._resources.settings.timezone, datetime.now(UTC))
            today = f"{local_now(offset):%A, %Y-%m-%d}"
            answer = await self._ask(agent, ask_changes(asked.facts, messages, today))
            found = read_changes(answer, asked.facts)
            if found is None:
                log.warning("the model's changes of the memory refused", extra={"pii": {"answer": answer[:500]}})
                return
            changes = found
        count = await self._memories.change(shard.owner, ended.mac, changes, ended.token)
        said = {"added": list(changes.add), "removed": list(changes.remove)}
        log.info("conversation remembered", extra={"changed": count, "superseded": count is None, "pii": said})

    async def _ask(self, agent: TurnAgent, prompt: Sequence[Message]) -> str:
        """Return the model's answer; empty if it is too long to be one."""
        answer = ""
        model = await agent.model(self._resources)
        stream = model.stream(prompt, (), LlmOptions(may_call=False))
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    answer += event.text
                if len(answer) > LONGEST_ANSWER:
                    return ""
        return answer
