"""Replies: what a turn that began as text came to, for the client of the api; the device gets its answer too."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.owner import Owner

REPLY_SECONDS = 600
"""How long a reply is kept."""

ReplyState = Literal["accepted", "answered", "failed", "interrupted", "busy"]
"""The state of a turn. `accepted`: the turn is not over. `answered`: the text is complete. `failed`: the text ends with
an apology. `interrupted`: the text is incomplete or empty. `busy`: the turn was not begun."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The state of a turn, and the text that was said in it."""

    state: ReplyState
    text: str = ""

    @property
    def over(self) -> bool:
        """Whether the reply is final."""
        return self.state != "accepted"


class Replies:
    """Reads and writes replies. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def expect(self, mac: str, turn: str) -> None:
        """Write the reply `accepted` for a turn that was requested."""
        key = self._store.keys.reply(mac, turn)
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(key, mapping=cast("Any", {"state": "accepted", "text": ""}))
        pipe.expire(key, REPLY_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def write(self, owner: Owner, mac: str, turn: str, reply: Reply) -> None:
        """Write the reply of a turn that is over.

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
        """Return the reply of a turn, or None if the turn is unknown or its reply has expired."""
        fields = self._store.client.hmget(self._store.keys.reply(mac, turn), ["state", "text"])
        state, text = await self._store.ask(cast("Awaitable[list[str | None]]", fields))
        return Reply(cast("ReplyState", state), text or "") if state else None
