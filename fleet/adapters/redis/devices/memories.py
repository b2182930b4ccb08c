"""What is known from each device's users, and the conversations that are still to be remembered."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS, prefix
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.memory import LARGEST, MOST, MemoryChanges
from fleet.core.ports import Message

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)

MOST_ATTEMPTS = 2
"""Requests to remember one conversation, the first included."""
AGAIN_SECONDS = 60.0
"""Time from one to the next; the first has ended by then."""


@dataclass(frozen=True, slots=True)
class EndedConversation:
    """A conversation that this worker has claimed, to remember it; `length` is its number of messages."""

    mac: str
    token: str
    length: int


class Memories:
    """Reads and changes facts. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, mac: str) -> tuple[str, ...]:
        """Return a device's facts, the oldest first."""
        facts = self._store.client.lrange(self._store.keys.memory(mac), 0, -1)
        return tuple(await self._store.ask(cast("Awaitable[list[str]]", facts)))

    async def claim(self, owner: Owner, shard: int, most: int) -> list[EndedConversation]:
        """Claim some conversations that have ended. What is not remembered in time is claimed once more, by any owner.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        found = await self._store.call(
            "fleet_memory_due",
            [keys.own(shard), keys.conversations(shard)],
            [owner.worker, owner.fence, prefix(shard), most, round(AGAIN_SECONDS * 1000), MOST_ATTEMPTS],
        )
        triples = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [EndedConversation(mac, token, int(length)) for mac, token, length in triples]

    async def messages(self, ended: EndedConversation) -> tuple[Message, ...]:
        """Return the messages of a conversation, as far as the history still has them."""
        if ended.length <= 0:
            return ()
        lines = self._store.client.lrange(self._store.keys.history(ended.mac), -ended.length, -1)
        return tuple(map(_MESSAGE.validate_json, await self._store.ask(cast("Awaitable[list[str]]", lines))))

    async def change(self, owner: Owner, mac: str, changes: MemoryChanges, token: str = "") -> int | None:
        """Change a device's facts.

        Args:
            owner: Of the device's shard.
            mac: The device.
            changes: Facts for which there is no room are not added.
            token: Of the claim that this answers.

        Returns:
            The number of facts added and removed; None if the claim does not count any more, and nothing was changed.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys, shard = self._store.keys, self._store.keys.shard(mac)
        done, removed, added = await self._store.call(
            "fleet_memory_change",
            [keys.own(shard), keys.memory(mac), keys.conversations(shard), keys.conversation(mac)],
            [
                *(owner.worker, owner.fence, DEVICE_SECONDS, mac, token, MOST, LARGEST),
                *(len(changes.remove), *changes.remove, *changes.add),
            ],
        )
        return int(removed) + int(added) if done == "1" else None

    async def forget(self, mac: str, facts: Sequence[str]) -> int:
        """Delete facts on behalf of an operator; return how many there were."""
        pipe = self._store.client.pipeline(transaction=False)
        for fact in facts:
            pipe.lrem(self._store.keys.memory(mac), 0, fact)
        return sum(await self._store.ask(cast("Awaitable[list[int]]", pipe.execute())))

    async def clear(self, mac: str) -> int:
        """Delete all facts of a device, and do not remember its last conversation; return how many facts there were."""
        names, pipe = self._store.keys, self._store.client.pipeline(transaction=False)
        pipe.llen(names.memory(mac))
        pipe.delete(names.memory(mac), names.conversation(mac))
        count, _ = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return int(count)

    async def all(self) -> list[str]:
        """Return all devices with facts; for commands of operators, because it reads all key names."""
        mark = ":m:"
        return sorted(name.partition(mark)[2] for name in await self._store.scan(f"f:{{*}}{mark}*"))
