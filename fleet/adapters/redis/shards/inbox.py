"""Mailboxes: streams between edges and shards, and from the api. Text only."""

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import BLOCK_SECONDS, Store
from fleet.wire.edge_messages import EDGE_COMMANDS, EDGE_EVENTS, EdgeCommand, EdgeEvent

_BATCH = 100

T = TypeVar("T")

_REMEMBERED: Final = 2000
"""Letters by which a reader knows one that was written twice: more than arrive while a writer repeats itself."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A message in a shard's mailbox; stays there until it is discarded."""

    shard: int
    id: str
    mail: EdgeEvent | None
    """None when this version does not know such a message, or has read it from another letter."""


class Inboxes:
    """Sends and reads mail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._edge_position: dict[str, str] = {}
        self._renewed: dict[str, float] = {}
        """When the life time of each edge's mailbox was set last, on the loop's clock."""
        self._seen: dict[str, str] = {}
        """The letter in which each mark was seen first."""

    async def to_shard(self, shard: int, mail: EdgeEvent) -> None:
        fields = _letter(EDGE_EVENTS.dump_json(mail))
        name = self._store.keys.mailbox(shard)
        await self._store.ask(self._store.client.xadd(name, fields, maxlen=keys.MAILBOX_LENGTH, approximate=True))

    async def to_edge(self, edge: str, *mails: EdgeCommand) -> None:
        """Send an edge mail, all of it in one round trip."""
        name = keys.edge_mailbox(edge)
        pipe = self._store.client.pipeline(transaction=False)
        for mail in mails:
            pipe.xadd(name, _letter(EDGE_COMMANDS.dump_json(mail)), maxlen=keys.MAILBOX_LENGTH, approximate=True)
        now = asyncio.get_running_loop().time()
        stale = now - self._renewed.get(name, -math.inf) > keys.EDGE_MAIL_SECONDS / 4
        if stale:
            pipe.expire(name, keys.EDGE_MAIL_SECONDS)
        await self._store.ask(cast("Awaitable[list[object]]", pipe.execute()))
        if stale:
            self._renewed = {edge: at for edge, at in self._renewed.items() if now - at < keys.EDGE_MAIL_SECONDS}
            self._renewed[name] = now

    async def read_shards(self, after: dict[int, str]) -> list[StreamEntry]:
        """Wait a moment for mail of the given shards.

        Args:
            after: For each shard the id of the last letter that was read, `0` to begin with what an earlier owner left.
        """
        names = {self._store.keys.mailbox(shard): shard for shard in after}
        return [
            StreamEntry(names[name], letter, self._open(EDGE_EVENTS, letter, fields))
            for name, letter, fields in await self._read({name: after[shard] for name, shard in names.items()})
        ]

    async def discard(self, letters: Iterable[StreamEntry]) -> None:
        """Remove letters that were handled: their effect is in Redis."""
        pipe = self._store.client.pipeline(transaction=False)
        for letter in letters:
            pipe.xdel(self._store.keys.mailbox(letter.shard), letter.id)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def read_edge(self, edge: str) -> AsyncIterator[EdgeCommand]:
        """Yield an edge's mail for ever, from its first; called again, from where it was left.

        Raises:
            Unavailable: Redis went away.
        """
        name = keys.edge_mailbox(edge)
        while True:
            for _, letter, fields in await self._read({name: self._edge_position.get(name, "0")}):
                self._edge_position[name] = letter
                mail = self._open(EDGE_COMMANDS, letter, fields)
                if mail is not None:
                    yield mail

    async def _read(self, after: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
        """Wait for news in the streams; return the stream, id and fields of each."""
        streams = await self._store.ask(self._store.reader.read_streams(after, _BATCH, BLOCK_SECONDS))
        return [(name, letter, fields) for name, letters in streams for letter, fields in letters]

    def _open(self, model: TypeAdapter[T], letter: str, fields: dict[str, str]) -> T | None:
        mark = fields.get("k")
        if mark is not None and self._seen.setdefault(mark, letter) != letter:
            return None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        try:
            return model.validate_json(fields.get("m", ""))
        except ValidationError:
            return None


def _letter(message: bytes) -> dict[Any, Any]:
    """Return a letter's fields; the mark shows when a command was repeated after a fault and wrote it twice."""
    return {"m": message, "k": secrets.token_hex(6)}
