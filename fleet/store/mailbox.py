"""Mailboxes: streams between edges and shards, and from the api. Text only."""

from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from redis.exceptions import RedisError

from fleet.errors import Unavailable
from fleet.store import keys
from fleet.store.connect import BLOCK_SECONDS, Store
from fleet.wire.mail import EDGE_MAIL, SHARD_MAIL, EdgeMail, ShardMail

_BATCH = 100

T = TypeVar("T")

_Streams = list[tuple[str, list[tuple[str, dict[str, str]]]]]


@dataclass(frozen=True, slots=True)
class Letter:
    """A message in a shard's mailbox; stays there until it is discarded."""

    shard: int
    id: str
    mail: ShardMail | None
    """None when this version does not know such a message."""


class Mailboxes:
    """Sends and reads mail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._edge_position: dict[str, str] = {}

    async def to_shard(self, shard: int, mail: ShardMail) -> None:
        await self._add(self._store.keys.mailbox(shard), SHARD_MAIL.dump_json(mail), None)

    async def to_edge(self, edge: str, mail: EdgeMail) -> None:
        await self._add(keys.edge_mailbox(edge), EDGE_MAIL.dump_json(mail), keys.EDGE_MAIL_SECONDS)

    async def read_shards(self, after: dict[int, str]) -> list[Letter]:
        """Wait a moment for mail of the given shards.

        Args:
            after: For each shard the id of the last letter that was read, `0` to begin with what an earlier owner left.
        """
        names = {self._store.keys.mailbox(shard): shard for shard in after}
        streams = await self._read({name: after[shard] for name, shard in names.items()})
        return [
            Letter(names[name], letter, _parse(SHARD_MAIL, fields))
            for name, letters in streams
            for letter, fields in letters
        ]

    async def discard(self, letters: Iterable[Letter]) -> None:
        """Remove letters that were handled: their effect is in Redis."""
        pipe = self._store.client.pipeline(transaction=False)
        for letter in letters:
            pipe.xdel(self._store.keys.mailbox(letter.shard), letter.id)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def read_edge(self, edge: str) -> AsyncIterator[EdgeMail]:
        """Yield an edge's mail for ever, from its first; called again, from where it was left.

        Raises:
            Unavailable: Redis went away.
        """
        name = keys.edge_mailbox(edge)
        while True:
            for _, letters in await self._read({name: self._edge_position.get(name, "0")}):
                for letter, fields in letters:
                    self._edge_position[name] = letter
                    mail = _parse(EDGE_MAIL, fields)
                    if mail is not None:
                        yield mail

    async def _add(self, name: str, message: bytes, seconds: int | None) -> None:
        pipe = self._store.client.pipeline(transaction=False)
        pipe.xadd(name, {"m": message}, maxlen=keys.MAILBOX_LENGTH, approximate=True)
        if seconds is not None:
            pipe.expire(name, seconds)
        await self._store.ask(cast("Awaitable[list[object]]", pipe.execute()))

    async def _read(self, after: dict[str, str]) -> _Streams:
        try:
            answer = await self._store.reader.xread(cast("Any", after), count=_BATCH, block=round(BLOCK_SECONDS * 1000))
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error
        return cast("_Streams", list(answer.items()) if isinstance(answer, dict) else answer or [])


def _parse(model: TypeAdapter[T], fields: dict[str, str]) -> T | None:
    try:
        return model.validate_json(fields.get("m", ""))
    except ValidationError:
        return None
