"""The connection to Redis or Valkey: one place through which every command goes."""

from collections.abc import Awaitable, Sequence
from importlib.resources import files
from typing import TypeVar, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError, ResponseError

from fleet.errors import ConfigError, Fenced, Unavailable
from fleet.store.keys import Keys

T = TypeVar("T")

COMMAND_SECONDS = 5.0
"""Longest wait for a connection, and for an answer."""
BLOCK_SECONDS = 0.5
"""Longest wait of one blocking read: also how long a newly owned shard's mail may wait for its first read."""


class Store:
    """A pool of connections with the functions loaded, and the key names that go with it."""

    def __init__(self, client: "Redis", reader: "Redis", shards: int) -> None:
        self.client = client
        self.reader = reader
        """For blocking reads, which must not starve the pool."""
        self.keys = Keys(shards)
        self._code = (files("fleet.store") / "functions.lua").read_text(encoding="utf-8")

    @classmethod
    async def open(cls, url: str, shards: int) -> "Store":
        """Connect and load the functions.

        Raises:
            ConfigError: The URL is none, or the server refuses us or is too old for functions.
            Unavailable: The server is not reachable.
        """
        try:
            reader = _client(url, 8, BLOCK_SECONDS + COMMAND_SECONDS)
            store = cls(_client(url, 64, COMMAND_SECONDS), reader, shards)
        except ValueError as error:
            raise ConfigError(f"FLEET_REDIS_URL: {error}") from error
        try:
            await store.load_functions()
        except ResponseError as error:
            await store.close()
            raise ConfigError(f"Redis refused fleet's functions (7.0 or later is needed): {error}") from error
        except (RedisError, OSError) as error:
            await store.close()
            raise Unavailable(f"Redis: {error}") from error
        return store

    async def load_functions(self) -> None:
        await self.client.function_load(self._code, replace=True)

    async def close(self) -> None:
        await self.client.aclose()
        await self.reader.aclose()

    async def call(self, function: str, keys: Sequence[str], args: Sequence[str | int]) -> list[str]:
        """Run a function of `functions.lua` and return its answer as a list of texts.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis did not answer or refused.
        """
        answer = await self.ask(self._fcall(function, keys, args))
        parts = answer if isinstance(answer, list) else [answer]
        return [str(part) for part in parts]

    async def _fcall(self, function: str, keys: Sequence[str], args: Sequence[str | int]) -> object:
        async def once() -> object:
            return await cast("Awaitable[object]", self.client.fcall(function, len(keys), *keys, *map(str, args)))

        try:
            return await once()
        except ResponseError as error:
            if "Function not found" not in str(error):
                raise
            # A Redis that came back without its data has lost the functions too; nothing was done yet.
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
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis: {error}") from error


def _client(url: str, connections: int, timeout: float | None) -> "Redis":
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=COMMAND_SECONDS,
        decode_responses=True,
        socket_timeout=timeout,
        socket_connect_timeout=COMMAND_SECONDS,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
    )
    return Redis.from_pool(pool)
