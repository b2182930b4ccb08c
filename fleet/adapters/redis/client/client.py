"""redis-py's client with fleet's limits. Only this folder knows the kind of Redis: server, Sentinel or Cluster."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from redis.asyncio import ConnectionPool, Redis, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.client import Pipeline
from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.commands import AsyncCoreCommands
from redis.event import EventDispatcher
from redis.exceptions import ClusterDownError, ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.adapters.redis.client.pipeline import PipelinedConnection, Words
from fleet.adapters.redis.client.retries import CONNECT_SECONDS, RetryPolicy
from fleet.adapters.redis.client.sentinels import Sentinels
from fleet.adapters.redis.client.url import RedisAddress, RedisLogin

WAIT_MS = 50
"""How long a primary waits for a replica's acknowledgement."""

_HEALTH_SECONDS = 30
_SENTINEL_SECONDS = 0.5

_QUICK: Final = frozenset(
    [
        *("FCALL", "GET", "SET", "DEL", "EXISTS", "EXPIRE", "HGET", "HSET", "HMGET", "HGETALL"),
        *("GETDEL", "HDEL", "LRANGE", "LTRIM", "PERSIST", "RPUSH", "SADD", "SISMEMBER", "SREM", "SMEMBERS"),
        *("XADD", "XDEL", "XRANGE", "ZADD", "ZCARD", "ZREM", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE"),
    ]
)
"""Commands that share a connection: none of them blocks or needs special response parsing of redis-py."""

Command = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments, and redis-py's options for parsing the answer."""
Streams = list[tuple[str, list[tuple[str, dict[str, str]]]]]

execute: Callable[..., Any] = Redis.execute_command
_sentinel_pool: Callable[..., ConnectionPool] = SentinelConnectionPool
"""Untyped in redis-py."""


class Batch(AsyncCoreCommands):
    """Commands that are sent together, perhaps to several nodes; not a transaction.

    Args:
        retries: Bounds and repeats the whole batch.
        send: Sends all and returns the answers in their order.
        bounded: Whether `send` ends in time by itself.
    """

    _event_dispatcher = EventDispatcher()

    def __init__(
        self, retries: RetryPolicy, send: Callable[[Sequence[Command]], Awaitable[list[Any]]], *, bounded: bool = False
    ) -> None:
        self._retries = retries
        self._send = send
        self._bounded = bounded
        self._commands: list[Command] = []

    def execute_command(self, *args: Any, **options: Any) -> "Batch":
        self._commands.append((args, options))
        return self

    async def execute(self) -> list[Any]:
        """Return the answers in the order of the commands."""
        if not self._commands:
            return []
        return await self._retries.run(lambda: self._send(self._commands), bounded=self._bounded)


class CommandConnection(Protocol):
    """What sends commands to one server (`PipelinedConnection`)."""

    @property
    def connected(self) -> bool:
        """Whether the next command is answered or fails within its time limit."""

    def send(self, words: Sequence[Any]) -> "asyncio.Future[list[Any]] | None":
        """Send a command at once; return the future of its answer, or None if it would have to wait."""

    async def ask(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands together and return their answers in their order."""

    async def drop(self) -> None:
        """End the connection, if there is one."""


class ServerClient(Redis):
    """A client of one server, or of the primary that Sentinels name."""

    retries: RetryPolicy
    batch_retries: RetryPolicy
    """A policy of its own, so that batches take no places from single commands."""
    sentinels: Sentinels | None
    pipelined: CommandConnection
    limit: float
    """Longest time of one attempt in seconds."""
    blocking: list[PipelinedConnection]
    """Unused connections for commands that block, one command at a time on each."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in _QUICK:
            return await self.retries.run(lambda: quick(self, *args), bounded=self.pipelined.connected)
        return await self.retries.run(lambda: execute(self, *args, **options))

    def send(self, words: Sequence[Any]) -> "asyncio.Future[list[Any]] | None":
        """Send a command at once, without retries; None if it would have to wait (`PipelinedConnection.send`)."""
        return self.pipelined.send(words)

    async def attempt(self, *words: Any) -> Any:
        """Send one of the quick commands once, without retries."""
        return await quick(self, *words)

    def pipeline(self, transaction: bool = False, shard_hint: str | None = None) -> Pipeline:
        return cast("Pipeline", Batch(self.batch_retries, self._send, bounded=self.pipelined.connected))

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Words) -> tuple[Any, int]:
        """Run a function, then wait for a replica; return the answer, and how many replicas have it."""
        command = ("FCALL", function, len(keys), *keys, *args)
        return await self.batch_retries.run(lambda: answer_saved(self, command))

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        """Return the new entries of the streams; wait for them up to `seconds`."""
        words = ("XREAD", "COUNT", count, "BLOCK", round(seconds * 1000), "STREAMS", *after, *after.values())
        bounded = bool(self.blocking) and self.blocking[-1].connected
        return to_streams(await self.retries.run(lambda: self._block(words), bounded=bounded))

    async def fits(self) -> bool:
        """Whether the server is of the kind that the address names."""
        return not (await self.info("cluster")).get("cluster_enabled")

    async def replication(self, key: str) -> Mapping[str, Any]:
        """Return the section `replication` of INFO from the key's node."""
        return cast("Mapping[str, Any]", await self.info("replication"))

    async def primaries(self) -> "list[Redis]":
        """Return a client of each server that takes writes."""
        return [self]

    def node_name(self, key: str) -> str:
        """Return the name of the key's node."""
        return ""

    async def refresh(self, fault: BaseException) -> None:
        """Close idle connections to a server that may not be the primary any more."""
        if isinstance(fault, ReadOnlyError | ClusterDownError | RedisTimeoutError | TimeoutError):
            await _hang_up(self.connection_pool.disconnect(inuse_connections=False))

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        for connection in (self.pipelined, *self.blocking):
            await connection.drop()
        await _hang_up(super().aclose(close_connection_pool))
        if self.sentinels is not None:
            await self.sentinels.aclose()

    async def _block(self, words: Sequence[Any]) -> Any:
        connection = self.blocking.pop() if self.blocking else PipelinedConnection(self.connection_pool, self.limit)
        answers: list[Any] = []
        try:
            answers = await connection.ask((words,))
        finally:
            if answers:
                self.blocking.append(connection)
            else:  # the answer to a command that was cancelled would keep the next one waiting
                await connection.drop()
        return _read(self, words[0], answers[0])

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        if all(args[0] in _QUICK for args, _ in commands):
            answers = await self.pipelined.ask([args for args, _ in commands])
            return [_read(self, args[0], answer) for (args, _), answer in zip(commands, answers, strict=True)]
        pipe = Redis.pipeline(self, transaction=False)
        for args, options in commands:
            pipe.execute_command(*args, **options)
        return await pipe.execute()


async def _hang_up(closing: Awaitable[None]) -> None:
    """Wait until connections are closed. Nothing depends on one that is late, as in a process that stood still."""
    with contextlib.suppress(RedisTimeoutError):
        await closing


async def quick(client: ServerClient, *words: Any) -> Any:
    """Send one of the quick commands on the shared connection and return its answer as redis-py does."""
    (answer,) = await client.pipelined.ask((words,))
    return _read(client, words[0], answer)


def _read(client: ServerClient, command: str, answer: Any) -> Any:
    read = client.response_callbacks.get(command)
    return read(answer) if read is not None else answer


async def answer_saved(node: Redis, command: Sequence[Any], *, asking: bool = False) -> tuple[Any, int]:
    """Send a command and WAIT on one connection; return the answer, and how many replicas have its effect."""
    pipe = Redis.pipeline(node, transaction=False)
    if asking:
        pipe.execute_command("ASKING")
    pipe.execute_command(*command)
    pipe.execute_command("WAIT", 1, WAIT_MS)
    *_, answer, replicas = await pipe.execute()
    return answer, int(replicas)


def connect_server(address: RedisAddress, places: int, answer: float) -> ServerClient:
    """Return a client of a server, or of the primary that Sentinels name; it connects when it is used.

    Args:
        address: Not of a Cluster.
        places: Commands, and batches, at a time.
        answer: Longest time of one attempt in seconds.
    """
    options = {**connection_options(address), "db": address.database, "max_connections": 2 * places}
    sentinels = None
    if address.kind == "sentinel":
        sentinels = Sentinels(address.hosts, _sentinel_options(address))
        pool = _sentinel_pool(address.sentinel_service, sentinels, **options, **_tls(address))
    elif address.socket:
        del options["socket_keepalive"]
        pool = ConnectionPool(connection_class=UnixDomainSocketConnection, path=address.socket, **options)
    else:
        host, port = address.hosts[0]
        options |= {"host": host, "port": port, **address.tls_options}
        pool = ConnectionPool(connection_class=SSLConnection if address.tls else Connection, **options)
    client = cast("ServerClient", ServerClient.from_pool(pool))
    client.sentinels = sentinels
    client.limit, client.blocking = answer, []
    client.pipelined = PipelinedConnection(pool, answer)
    client.retries = RetryPolicy(places, client.refresh, answer)
    client.batch_retries = RetryPolicy(places, client.refresh, answer)
    return client


def connection_options(address: RedisAddress) -> dict[str, Any]:
    """Return the options of all connections. Only `RetryPolicy` sets time limits and retries."""
    return {
        **_login(address.login),
        "decode_responses": True,
        "socket_timeout": None,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }


def to_streams(answer: Any) -> Streams:
    """Return the answer of XREAD in either version of the protocol."""
    return cast("Streams", list(answer.items()) if isinstance(answer, dict) else answer or [])


def _sentinel_options(address: RedisAddress) -> dict[str, Any]:
    limits = {"socket_timeout": _SENTINEL_SECONDS, "socket_connect_timeout": _SENTINEL_SECONDS}
    return {**connection_options(address), **_login(address.sentinel_login), **limits, **_tls(address)}


def _tls(address: RedisAddress) -> dict[str, Any]:
    return {"ssl": True, **address.tls_options} if address.tls else {}


def _login(login: RedisLogin) -> dict[str, str | None]:
    return {"username": login.username, "password": login.password}
