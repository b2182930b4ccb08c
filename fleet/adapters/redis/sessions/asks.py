"""Calls that wait for the user's yes: each is a part of the journal of the turn that asks, for the next turn only."""

from typing import Final

from pydantic import TypeAdapter

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import TURN_SECONDS
from fleet.adapters.redis.shards.inbox import NO_POST
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.consent import Ask

_ASK: Final[TypeAdapter[Ask]] = TypeAdapter(Ask)


class Asks:
    """Keeps waiting calls; `fleet_turn_begin` hands them to the next turn."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, owner: Owner, mac: str, ask: Ask) -> None:
        """Keep a call for the turn after the one that asks.

        Raises:
            Fenced: The shard is another worker's now, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_turn_record",
            [keys.own(keys.shard(mac)), keys.turn(mac)],
            [owner.worker, owner.fence, TURN_SECONDS, ask.turn, *NO_POST, "ask", _ASK.dump_json(ask).decode()],
        )


def read_ask(text: str) -> Ask | None:
    """Return a kept call; None for an empty text."""
    return _ASK.validate_json(text) if text else None
