"""The answers to turns that began as text, for the client of the api; the device gets them too."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.owner import Owner

REPLY_SECONDS = 600
"""Life of an answer."""

ReplyState = Literal["accepted", "answered", "failed", "interrupted", "busy"]
"""`failed`: the text ends with an apology. `interrupted`: the text is incomplete or empty. `busy`: not begun."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The state of a turn, and the text of its answer."""

    state: ReplyState
    text: str = ""

    @property
    def over(self) -> bool:
        """Whether the state is final."""
        return self.state != "accepted"


class Replies:
    """Reads and writes answers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def expect(self, mac: str, turn: str) -> None:
        """Record that a turn was requested."""
        key = self._store.keys.reply(mac, turn)
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(key, mapping=cast("Any", {"state": "accepted", "text": ""}))
        pipe.expire(key, REPLY_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def write(self, owner: Owner, mac: str, turn: str, reply: Reply) -> None:
        """Record the end of a turn.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.reply(mac, turn)],
            [owner.worker, owner.fence, REPLY_SECONDS, "state", reply.state, "text", reply.text],
        )

    async def read(self, mac: str, turn: str) -> Reply | None:
        """Return the state of a turn, or None if it is unknown or has expired."""
        fields = self._store.client.hmget(self._store.keys.reply(mac, turn), ["state", "text"])
        state, text = await self._store.ask(cast("Awaitable[list[str | None]]", fields))
        return Reply(cast("ReplyState", state), text or "") if state else None
