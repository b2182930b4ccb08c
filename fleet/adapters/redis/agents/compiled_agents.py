"""The compiled agents in Redis: one document for each content, and in every shard which one counts now.

Control writes, in an order in which a reader never finds a digest without its document; workers, edges and gateways
read. Whose agent a device has is the field `agent` of its admission, else the agent of the site.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, cast

from fleet.adapters.redis import keys
from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.edges import Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.wire.agents import CompiledAgent
from fleet.wire.edge_messages import AgentsChangedCommand

USUAL: Final = "*"
"""Field of a shard's agents that holds the id of the site's agent."""
MOST_AGENTS: Final = 1000
"""Compiled agents of a site."""
REPLACED_SECONDS: Final = 24 * 3600
"""Life of a document that no agent has any more: turns that began with it still read it."""
_AT_ONCE = 500


class CompiledAgents:
    """Reads and writes them. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def document(self, digest: str) -> str | None:
        """Return the JSON of a `CompiledAgent`; None if there is none."""
        text = self._store.client.get(keys.agent_document(digest))
        return await self._store.ask(cast("Awaitable[str | None]", text))

    async def of_devices(self, macs: Sequence[str]) -> list[str]:
        """Return the digest of the agent of each device, empty for the settings alone."""
        names = self._store.keys
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    self._store.call(
                        "fleet_agent", [admission_key(self._store, mac), names.agents(names.shard(mac))], []
                    )
                )
                for mac in macs
            ]
        return [task.result()[0] for task in asked]

    async def of_site(self) -> str:
        """Return the digest of the agent of everyone who is no device, and of devices without one of their own."""
        nobody = f"{keys.prefix(0)}o:"
        (digest,) = await self._store.call("fleet_agent", [nobody, self._store.keys.agents(0)], [])
        return digest

    async def heads(self) -> dict[str, str]:
        """Return the digest of each agent by its id; at `USUAL` the id of the site's agent."""
        found = cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.agents(0)))
        return {name: head.partition(" ")[0] for name, head in (await self._store.ask(found)).items()}

    async def publish(self, agents: Sequence[CompiledAgent], usual: str = "", *, whole: bool = False) -> None:
        """Store agents; they count from the next turn on.

        Args:
            agents: Them.
            usual: Id of the site's agent; empty for none. It only counts with `whole`.
            whole: Whether these are all agents, so that others are removed.
        """
        before = await self.heads()
        fields = {one.id: f"{one.digest} {_history(one)}" for one in agents}
        documents = self._store.client.pipeline(transaction=False)
        for one in agents:
            documents.set(keys.agent_document(one.digest), one.model_dump_json(exclude_defaults=True))
        if agents:
            await self._store.ask(cast("Awaitable[list[Any]]", documents.execute()))
        gone = before.keys() - fields.keys() - {USUAL} if whole else set()
        await self._write(fields, gone)
        if whole:
            await self._write({USUAL: usual} if usual else {}, set() if usual else {USUAL})
        replaced = {before[name] for name in {*gone, *fields} if name in before} - {one.digest for one in agents}
        await self._expire(replaced)
        await self.notify()

    async def withdraw(self, agent: str) -> None:
        """Remove an agent; devices that have it get the site's."""
        before = (await self.heads()).get(agent)
        await self._write({}, {agent})
        await self._expire({before} if before else set())
        await self.notify()

    async def set_usual(self, agent: str) -> None:
        """Set the site's agent by its id; an empty one means the settings alone."""
        await self._write({USUAL: agent} if agent else {}, set() if agent else {USUAL})
        await self.notify()

    async def assign(self, given: Mapping[str, str]) -> None:
        """Set the agent of devices: its id by MAC, empty for none of their own."""
        for at in range(0, len(given), _AT_ONCE):
            pipe = self._store.client.pipeline(transaction=False)
            for mac, agent in list(given.items())[at : at + _AT_ONCE]:
                key = admission_key(self._store, mac)
                if agent:
                    pipe.hset(key, "agent", agent)
                    pipe.persist(key)
                else:
                    pipe.hdel(key, "agent")
            await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        if given:
            await self.notify(next(iter(given)) if len(given) == 1 else "")

    async def notify(self, mac: str = "") -> None:
        """Tell all edges that the agent of a device, or of any device, may be another now."""
        inboxes, changed = Inboxes(self._store), AgentsChangedCommand(device=mac, session="")
        for edge in await Edges(self._store).live():
            await inboxes.to_edge(edge.id, changed)

    async def _write(self, fields: Mapping[str, str], gone: set[str]) -> None:
        pipe = self._store.client.pipeline(transaction=False)
        for shard in range(self._store.keys.shards):
            name = self._store.keys.agents(shard)
            if fields:
                pipe.hset(name, mapping=cast("Any", fields))
            if gone:
                pipe.hdel(name, *gone)
        if fields or gone:
            await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))

    async def _expire(self, digests: set[str]) -> None:
        pipe = self._store.client.pipeline(transaction=False)
        for digest in digests:
            pipe.expire(keys.agent_document(digest), REPLACED_SECONDS)
        if digests:
            await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))


def _history(agent: CompiledAgent) -> str:
    most = agent.document.history_messages
    return "" if most is None else str(most)
