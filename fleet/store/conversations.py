"""A device's history, and the journal of its running turn."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import TypeAdapter

from fleet.core.ports import Message
from fleet.store.connect import Store
from fleet.store.keys import TURN_SECONDS
from fleet.store.owner import Owner

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])

LONGEST_HISTORY = 100
"""Messages kept of a device; how many the model is given is a setting."""


@dataclass(frozen=True, slots=True)
class Journal:
    """What a turn has already done: the messages since the user's, and how many sentences were handed to the edge."""

    turn: str
    state: str
    messages: tuple[Message, ...]
    sentences: int


class Conversations:
    """Reads and writes histories and journals.

    Args:
        store: Where they are kept.
        seconds: How long a history is kept after its last turn.
    """

    def __init__(self, store: Store, seconds: int) -> None:
        self._store = store
        self._seconds = seconds

    async def history(self, mac: str, most: int) -> list[Message]:
        """Return the newest messages, oldest first."""
        if most == 0:
            return []
        lines = await self._store.ask(
            cast("Awaitable[list[str]]", self._store.client.lrange(self._store.keys.history(mac), -most, -1))
        )
        return [_MESSAGE.validate_json(line) for line in lines]

    async def remember(self, owner: Owner, mac: str, messages: Sequence[Message]) -> None:
        """Append a finished turn's messages to the history."""
        keys = self._store.keys
        lines = [_MESSAGE.dump_json(message).decode() for message in messages]
        await self._store.call(
            "fleet_append",
            [keys.own(keys.shard(mac)), keys.history(mac)],
            [owner.worker, owner.fence, self._seconds, LONGEST_HISTORY, *lines],
        )

    async def record(self, owner: Owner, mac: str, journal: Journal) -> None:
        """Write down how far a turn has got, before its next step begins."""
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.turn(mac)],
            [
                owner.worker,
                owner.fence,
                TURN_SECONDS,
                *("turn", journal.turn),
                *("state", journal.state),
                *("messages", _MESSAGES.dump_json(journal.messages).decode()),
                *("sentences", journal.sentences),
            ],
        )

    async def journal(self, mac: str) -> Journal | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.turn(mac)))
        )
        if not record:
            return None
        messages = _MESSAGES.validate_json(record["messages"])
        return Journal(record["turn"], record["state"], messages, int(record["sentences"]))
