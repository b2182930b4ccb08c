"""Inboxes: streams between edges and shards, and from the api to shards. Text only."""

import asyncio
import itertools
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import msgspec

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import BLOCK_SECONDS, Store
from fleet.ground.errors import Unavailable
from fleet.wire.edge_messages import EDGE_COMMANDS, EDGE_EVENTS, EdgeCommand, EdgeEvent

_BATCH = 100
_PAUSE_SECONDS: Final = 0.01
"""Between two reads while messages come often, so that one read returns several: a read costs more than a message. An
edge keeps the packets that come before their session."""

READ_SECONDS: Final = 10.0
"""About how long an edge's inbox has what the edge has read: it has what people said, and what was redacted."""

T = TypeVar("T")

_ENCODER: Final = msgspec.json.Encoder()

NO_POST: Final = ("", 0, 0, 0)
"""What `Inboxes.post_all` returns for nothing."""

_REMEMBERED: Final = 2000
"""Entries that a reader keeps to recognise duplicates; more than arrive while a writer retries a command."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A message in a shard's inbox; stays there until it is discarded."""

    shard: int
    id: str
    event: EdgeEvent | None
    """None if this version does not know the message, or if the entry is a duplicate."""


class Inboxes:
    """Writes and reads entries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._edge_position: dict[str, str] = {}
        self._renewed: dict[str, float] = {}
        """When the expiry of each edge's inbox was last set, on the loop's clock."""
        self._marks = map(f"{secrets.token_hex(6)}{{:x}}".format, itertools.count())
        """Of messages: a duplicate, written when a command was retried, has the same."""
        self._last_read = -math.inf
        """When a read last returned entries, on the loop's clock."""
        self._rest_until = 0.0
        self._seen: dict[str, str] = {}
        """The entry in which each mark was seen first."""

    async def to_shard(self, shard: int, event: EdgeEvent) -> None:
        words = self._entry(self._store.keys.inbox(shard), event)
        await self._store.ask(cast("Awaitable[str]", self._store.client.execute_command(*words)))

    async def offer_to_shard(self, shard: int, event: EdgeEvent) -> bool:
        """Send an operator's text, unless the inbox is half full: the rest is for what users say.

        Returns:
            Whether it was sent.
        """
        waiting = await self._store.ask(self._store.client.xlen(self._store.keys.inbox(shard)))
        if waiting >= keys.INBOX_LENGTH // 2:
            return False
        await self.to_shard(shard, event)
        return True

    async def waiting(self, shards: Iterable[int]) -> list[int]:
        """Return how many messages wait for the owner of each shard."""
        pipe = self._store.client.pipeline(transaction=False)
        for shard in shards:
            pipe.xlen(self._store.keys.inbox(shard))
        return await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def to_edge(self, edge: str, *commands: EdgeCommand) -> None:
        """Send commands to an edge in one round trip."""
        name = keys.edge_inbox(edge)
        pipe = self._store.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*self._entry(name, command))
        if life := self._life(name):
            pipe.expire(name, life)
        try:
            await self._store.ask(cast("Awaitable[list[object]]", pipe.execute()))
        except Unavailable:
            self._renewed.pop(name, None)
            raise

    def post(self, command: EdgeCommand | None) -> tuple[bytes, str, int, int]:
        """Return the arguments with which a function of `functions.lua` sends an edge a message.

        Args:
            command: None for no message.

        Returns:
            The message, its mark, the longest inbox, and the seconds that a new inbox lives. The message is empty
            without a command, and in a Cluster: there `to_edge` is the only way.
        """
        if command is None or self._store.spans_nodes:
            return b"", "", 0, 0
        return _ENCODER.encode(command), next(self._marks), keys.INBOX_LENGTH, keys.EDGE_INBOX_SECONDS

    def post_all(self, edge: str, commands: Sequence[EdgeCommand]) -> tuple[bytes | str | int, ...]:
        """Return the arguments with which a function of `functions.lua` sends an edge messages; `post` tells of one.

        Args:
            edge: Empty for none.
            commands: In their order.

        Returns:
            The edge, the longest inbox, the seconds that a new inbox lives, the number of messages, and of each the
            message and its mark. There are none without an edge, and in a Cluster: there `to_edge` is the only way.
        """
        if not edge or self._store.spans_nodes:
            return NO_POST
        words: list[bytes | str | int] = [edge, keys.INBOX_LENGTH, keys.EDGE_INBOX_SECONDS, len(commands)]
        for command in commands:
            words += _ENCODER.encode(command), next(self._marks)
        return tuple(words)

    def _life(self, name: str) -> int:
        """Return the seconds that an inbox lives if it is time to set them again, else 0."""
        now = asyncio.get_running_loop().time()
        if now - self._renewed.get(name, -math.inf) <= keys.EDGE_INBOX_SECONDS / 4:
            return 0
        self._renewed = {edge: at for edge, at in self._renewed.items() if now - at < keys.EDGE_INBOX_SECONDS}
        self._renewed[name] = now
        return keys.EDGE_INBOX_SECONDS

    async def read_shards(self, after: dict[int, str]) -> list[StreamEntry]:
        """Return new entries of the given shards; wait for them up to `BLOCK_SECONDS`.

        Args:
            after: For each shard the id of the last entry that was read, `0` to begin with the entries that an earlier
                owner left.
        """
        names = {self._store.keys.inbox(shard): shard for shard in after}
        return [
            StreamEntry(names[name], entry, self._open(EDGE_EVENTS, entry, fields))
            for name, entry, fields in await self._read({name: after[shard] for name, shard in names.items()})
        ]

    async def discard(self, entries: Iterable[StreamEntry]) -> None:
        """Remove handled entries: their effect is in Redis."""
        pipe = self._store.client.pipeline(transaction=False)
        for entry in entries:
            pipe.xdel(self._store.keys.inbox(entry.shard), entry.id)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def read_edge(self, edge: str) -> AsyncIterator[EdgeCommand]:
        """Yield an edge's commands for ever, from the first one; a second call continues where the first ended.

        Raises:
            Unavailable: Redis went away.
        """
        name, clock = keys.edge_inbox(edge), asyncio.get_running_loop().time
        emptied, kept = clock(), False
        while True:
            if kept and clock() - emptied > READ_SECONDS:
                await self._forget(name)
                emptied, kept = clock(), False
            for _, entry, fields in await self._read({name: self._edge_position.get(name, "0")}):
                self._edge_position[name], kept = entry, True
                command = self._open(EDGE_COMMANDS, entry, fields)
                if command is not None:
                    yield command

    async def _forget(self, name: str) -> None:
        """Delete what was read of an edge's inbox."""
        milliseconds, _, number = self._edge_position[name].partition("-")
        beyond = f"{milliseconds}-{int(number) + 1}"
        await self._store.ask(self._store.client.xtrim(name, minid=beyond, approximate=False))

    async def _read(self, after: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
        """Wait for new entries in the streams; return the stream, id and fields of each."""
        clock = asyncio.get_running_loop().time
        if (rest := self._rest_until - clock()) > 0:
            await asyncio.sleep(rest)
        streams = await self._store.ask(self._store.reader.read_streams(after, _BATCH, BLOCK_SECONDS))
        if streams:
            now, last = clock(), self._last_read
            self._last_read = now
            if now - last < 2 * _PAUSE_SECONDS and max(len(entries) for _, entries in streams) < _BATCH:
                self._rest_until = now + _PAUSE_SECONDS
        return [(name, entry, fields) for name, entries in streams for entry, fields in entries]

    def _open(self, decoder: msgspec.json.Decoder[T], entry: str, fields: dict[str, str]) -> T | None:
        mark = fields.get("k")
        if mark is not None and self._seen.setdefault(mark, entry) != entry:
            return None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        try:
            return decoder.decode(fields.get("m", ""))
        except (ValueError, RecursionError):  # `DecodeError` is a ValueError, and so are faults of UTF-8
            return None

    def _entry(self, inbox: str, message: EdgeCommand | EdgeEvent) -> tuple[str | int | bytes, ...]:
        """Return the command that writes a message."""
        message_json = _ENCODER.encode(message)
        return "XADD", inbox, "MAXLEN", "~", keys.INBOX_LENGTH, "*", "m", message_json, "k", next(self._marks)
