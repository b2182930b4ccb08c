"""A store whose Redis is in memory: everything above the connection is the product's, with `functions.lua`."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from fleet.adapters.redis.client.client import ServerClient, Streams
from fleet.adapters.redis.client.retries import RetryPolicy
from fleet.adapters.redis.client.store import MOST_COMMANDS, Store
from tests.support.memory_redis import MemoryRedis

SHARDS = 16


class MemoryConnection:
    """A `CommandConnection` to a Redis in memory."""

    connected = True

    def __init__(self, redis: MemoryRedis) -> None:
        self.redis = redis
        self.fault: Exception | None = None
        """Raised by every command that comes now."""
        self.there = self.back = 0.0
        """Seconds that a command and its answer take."""

    def send(self, words: Sequence[Any]) -> None:
        """Return None: the command goes the careful way."""

    async def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        await asyncio.sleep(self.there)
        if self.fault is not None:
            raise self.fault
        answers, refused = [], None
        for words in commands:
            try:
                answers.append(self.redis.run(*words))
            except RedisError as error:
                refused = refused or error
        await asyncio.sleep(self.back)
        if refused is not None:
            raise refused
        return answers

    async def drop(self) -> None:
        return


class MemoryClient(ServerClient):
    """A client of a Redis in memory."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async def once() -> Any:
            (answer,) = await self.pipelined.ask((args,))
            return self._read(answer, args, options)

        return await self.retries.run(once, bounded=True)

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        redis, found = self.in_memory.redis, {}
        try:
            async with asyncio.timeout(seconds):
                while not found:
                    redis.written.clear()
                    entries = {
                        key: redis.run("XRANGE", key, f"({last}", "+", "COUNT", count) for key, last in after.items()
                    }
                    found = {key: some for key, some in entries.items() if some}
                    if not found:
                        await redis.written.wait()
        except TimeoutError:
            return []
        return [
            (key, [(entry, dict(zip(fields[::2], fields[1::2], strict=True))) for entry, fields in some])
            for key, some in found.items()
        ]

    async def fits(self) -> bool:
        return True

    async def replication(self, key: str) -> Mapping[str, Any]:
        return {}

    @property
    def in_memory(self) -> MemoryConnection:
        assert isinstance(self.pipelined, MemoryConnection)
        return self.pipelined

    async def _send(self, commands: Any) -> list[Any]:
        answers = await self.pipelined.ask([args for args, _ in commands])
        return [self._read(answer, *command) for command, answer in zip(commands, answers, strict=True)]

    def _read(self, answer: Any, words: Sequence[Any], options: Mapping[str, Any]) -> Any:
        read = self.response_callbacks.get(words[0])
        return read(answer, **{name: value for name, value in options.items() if name != "keys"}) if read else answer


def memory_client(redis: MemoryRedis) -> MemoryClient:
    client = MemoryClient(connection_pool=ConnectionPool(decode_responses=True, protocol=2))
    client.sentinels, client.pipelined, client.blocking = None, MemoryConnection(redis), []
    client.retries, client.batch_retries = (
        RetryPolicy(MOST_COMMANDS, client.refresh),
        RetryPolicy(MOST_COMMANDS, client.refresh),
    )
    return client


async def memory_store(redis: MemoryRedis | None = None, shards: int = SHARDS) -> Store:
    """Return a store with the functions loaded; several may share one Redis, as processes do."""
    client = memory_client(redis or MemoryRedis())
    store = Store(client, client, shards)
    await store.load_functions()
    return store


def connection_of(store: Store) -> MemoryConnection:
    """Return the connection of such a store, to delay it or let it fail."""
    assert isinstance(store.client, MemoryClient)
    return store.client.in_memory
