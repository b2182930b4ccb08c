"""The connection to Redis or Valkey: one place through which every command goes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar, cast

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, OutOfMemoryError, ResponseError

from fleet.adapters.redis.client.client import ServerClient, connect_server
from fleet.adapters.redis.client.cluster import ClusterClient
from fleet.adapters.redis.client.functions import forget_others, functions
from fleet.adapters.redis.client.pipeline import Words
from fleet.adapters.redis.client.replicas import Replicas
from fleet.adapters.redis.client.retries import ANSWER_SECONDS, FAULTS
from fleet.adapters.redis.client.url import Kind, RedisAddress, parse_redis_url
from fleet.adapters.redis.keys import WORKERS, Keys, probe
from fleet.ground.errors import ConfigError, Fenced, Unavailable

T = TypeVar("T")

MOST_COMMANDS = 64
"""Bound of the commands that run at a time; the others wait."""
MOST_BLOCKING_READS = 8
"""Bound of the blocking reads at a time: with connections of their own, so that they take none from commands."""
BLOCK_SECONDS = 0.5
"""Longest wait of one blocking read; also how long a newly owned shard's inbox may wait for its first read."""

_WRITE_SECONDS = 1.0
_PROBE_MS = 10_000
_SCANNED_AT_ONCE = 1_000


class Store:
    """A pool of connections with the functions loaded, and the key names that go with it.

    No other module knows whether Redis is one server, a primary named by Sentinels, or a Cluster. Every wait has a
    limit: a command that Redis does not answer in time raises `Unavailable` (`fleet.adapters.redis.client.retries`).
    """

    def __init__(self, client: ServerClient, reader: ServerClient, shards: int) -> None:
        self.client = client
        self.reader = reader
        """For blocking reads, which must not starve the pool."""
        self.spans_nodes = isinstance(client, ClusterClient)
        """Whether the keys are on several nodes, so that a function can only write keys of one shard."""
        self.keys = Keys(shards)
        self._replicas = Replicas(client)
        self.functions = functions()
        """The functions of this version of fleet."""
        self._wrote: float | None = None

    @classmethod
    async def open(cls, url: str, shards: int, authorities: Path | None = None, *, load: bool = True) -> "Store":
        """Connect and load the functions.

        Args:
            url: As FLEET_REDIS_URL.
            shards: The number of shards of the installation, the same in all processes.
            authorities: PEM file with authorities for TLS, besides those of the system.
            load: Whether to load the functions; False for read-only commands.

        Raises:
            ConfigError: The URL is invalid, or the server refuses the login or is too old for functions.
            Unavailable: The server is not reachable.
        """
        address = parse_redis_url(url, authorities)
        reader = _connect(address, MOST_BLOCKING_READS, BLOCK_SECONDS + ANSWER_SECONDS)
        store = cls(_connect(address, MOST_COMMANDS, ANSWER_SECONDS), reader, shards)
        async with AsyncExitStack() as unless_open:
            unless_open.push_async_callback(store.close)
            try:
                if not await store.client.fits():
                    raise _wrong_kind(address.kind)
                if load:
                    await store.load_functions()
                    for node in await store.client.primaries():
                        await forget_others(node, store.functions)
            except FAULTS as error:
                raise _opening_error(error) from error
            unless_open.pop_all()
        return store

    async def load_functions(self) -> None:
        """Load `functions.lua`, into every primary of a Cluster."""
        await self.client.function_load(self.functions.code, replace=True)

    async def close(self) -> None:
        await self.client.aclose()
        await self.reader.aclose()

    async def ping(self) -> None:
        """Return when Redis answers.

        Raises:
            Unavailable: It does not.
        """
        await self.ask(self.client.exists(WORKERS))

    async def ping_writes(self) -> None:
        """Return when every node answers and takes writes; tries it at most once a second.

        Raises:
            Unavailable: It does not answer, is read-only, full, cannot write to its disk, or lacks replicas; says why.
        """
        await self.ping()
        now = asyncio.get_running_loop().time()
        if self._wrote is not None and now - self._wrote < _WRITE_SECONDS:
            return
        keys = {self.client.node_name(key): key for key in map(probe, range(self.keys.shards))}
        for key in keys.values():
            # Sent once: a server that is read-only stays so for longer than a probe waits.
            await self.ask(self.client.attempt("SET", key, "", "PX", _PROBE_MS))
        self._wrote = now

    async def scan(self, pattern: str) -> list[str]:
        """Return the names of all keys that match. It reads every key's name: for commands of operators only.

        Raises:
            Unavailable: Redis did not answer.
        """
        return [name async for page in self.pages(pattern) for name in page]

    async def pages(self, pattern: str) -> AsyncIterator[list[str]]:
        """Yield the names of all keys that match, page by page; a name may come twice.

        Raises:
            Unavailable: Redis did not answer.
        """

        async def read(node: Redis, cursor: int) -> tuple[int, list[str]]:
            following, names = await node.scan(cursor, pattern, _SCANNED_AT_ONCE)
            return int(following), [str(name) for name in names]

        for node in await self.ask(self.client.primaries()):
            cursor, names = await self.ask(read(node, 0))
            yield names
            while cursor:
                cursor, names = await self.ask(read(node, cursor))
                yield names

    def call(self, function: str, keys: Sequence[str], args: Words) -> Coroutine[Any, Any, list[str]]:
        """Run a function of `functions.lua`, at once if it need not wait, and return its answer as a list of texts.

        The function may run twice, if the connection breaks after the first run: see `docs/adr/0007-redis-failover.md`.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis did not answer or refused.
        """
        words = _words(self.functions.name(function), keys, args)
        # In a Cluster a command may have to be sent again to another node.
        return self._answer(words, None if self.spans_nodes else self.client.send(words))

    async def _answer(self, words: Words, sent: "asyncio.Future[list[Any]] | None") -> list[str]:
        if sent is not None:
            # Nearly every call ends here. All others are repeated with care, also those that the server refused.
            try:
                (answer,) = await sent
            except FAULTS:
                pass
            else:
                if not isinstance(answer, Exception):
                    return _texts(answer)

        def once() -> Awaitable[object]:
            return self.client.execute_command(*words)

        return _texts(await self.ask(self._with_functions(once)))

    async def call_each(self, function: str, each: Sequence[tuple[Sequence[str], Words]]) -> list[list[str]]:
        """Run a function once with each pair of keys and arguments, all sent together; see `call`."""
        asked = [_words(self.functions.name(function), keys, args) for keys, args in each]
        sent = [None if self.spans_nodes else self.client.send(words) for words in asked]
        try:
            return [await self._answer(words, one) for words, one in zip(asked, sent, strict=True)]
        finally:
            for one in sent:
                if one is not None and not one.cancel() and not one.cancelled():
                    one.exception()  # or the loop would report it

    async def call_saved(self, function: str, keys: Sequence[str], args: Words) -> tuple[list[str], bool]:
        """Run a function and wait until a replica has its effect, if there are replicas.

        Returns:
            The answer, and whether a replica has its effect; True if the server has no replica.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis did not answer or refused.
        """
        exist = self._replicas.known(keys[0])
        if exist is None:
            exist = await self.ask(self._replicas.exist(keys[0]))
        if not exist:
            return await self.call(function, keys, args), True
        words, faults, name = list(args), self._replicas.faults, self.functions.name(function)
        answer, acknowledged = await self.ask(self._with_functions(lambda: self.client.fcall_saved(name, keys, words)))
        if acknowledged:
            return _texts(answer), True
        self._replicas.forget()
        # After a failover another server answered, which may have no replica.
        moved = faults != self._replicas.faults
        return _texts(answer), moved and not await self.ask(self._replicas.exist(keys[0]))

    async def _with_functions(self, once: Callable[[], Awaitable[T]]) -> T:
        """Run a call; if the server lacks the functions, load them and run the call again."""
        try:
            return await once()
        except ResponseError as error:
            if "Function not found" not in str(error):
                raise
            # A Redis that restarted without its data has lost the functions; another version that starts deletes them.
            # The function has not run yet.
            await self.load_functions()
            return await once()

    async def ask(self, command: Awaitable[T]) -> T:
        """Await a command, with the client's errors turned into ours."""
        try:
            return await command
        except ResponseError as error:
            if str(error).startswith("FENCED"):
                raise Fenced(str(error)) from error
            raise Unavailable(f"Redis refused: {error}") from error
        except FAULTS as error:
            raise Unavailable(f"Redis: {str(error) or 'no answer in time'}") from error


def _connect(address: RedisAddress, places: int, answer: float) -> ServerClient:
    if address.kind == "cluster":
        # It has what the store uses, and takes commands from the same mixin of redis-py.
        return cast("ServerClient", ClusterClient(address, places, answer))
    return connect_server(address, places, answer)


def _words(function: str, keys: Sequence[str], args: Words) -> Words:
    return "FCALL", function, len(keys), *keys, *args


def _texts(answer: object) -> list[str]:
    return list(map(str, answer)) if isinstance(answer, list) else [str(answer)]


def _wrong_kind(kind: Kind) -> ConfigError:
    if kind == "cluster":
        return ConfigError("FLEET_REDIS_URL names no Cluster: write redis:// instead of redis+cluster://")
    return ConfigError("FLEET_REDIS_URL names a node of a Cluster: write redis+cluster:// instead of redis://")


def _opening_error(error: BaseException) -> ConfigError | Unavailable:
    """Return the error for the operator after the first command failed."""
    text = str(error)
    if isinstance(error, AuthenticationError) or text.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return ConfigError(f"FLEET_REDIS_URL: Redis refuses the name or password: {text}")
    if isinstance(error, OutOfMemoryError) or text.startswith(("MISCONF", "NOREPLICAS")):
        return Unavailable(f"Redis refuses writes: {text}")
    if isinstance(error, ResponseError):
        return ConfigError(f"Redis refused fleet's functions (7.0 or later is needed): {text}")
    return Unavailable(f"Redis: {text or 'no answer in time'}")
