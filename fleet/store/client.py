"""redis-py's client with fleet's limits on it; nothing else in the store knows which kind of Redis it talks to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from redis.asyncio import ConnectionPool, Redis, Sentinel, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.client import Pipeline
from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.commands import AsyncCoreCommands
from redis.event import EventDispatcher
from redis.exceptions import ClusterDownError, ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.store.patience import CONNECT_SECONDS, Patience
from fleet.store.url import Login, RedisAddress

WAIT_MS = 50
"""How long a primary waits for a replica's acknowledgement."""

_HEALTH_SECONDS = 30
_SENTINEL_SECONDS = 0.5

Command = tuple[tuple[Any, ...], dict[str, Any]]
"""Its words, and redis-py's options for reading the answer."""
Streams = list[tuple[str, list[tuple[str, dict[str, str]]]]]

execute: Callable[..., Any] = Redis.execute_command
_sentinel_pool: Callable[..., ConnectionPool] = SentinelConnectionPool
"""Untyped in redis-py."""


class Batch(AsyncCoreCommands):
    """Commands that are sent together; they may live on several nodes, and are no transaction.

    Args:
        patience: Bounds and repeats the whole.
        send: Sends all and returns the answers in their order.
    """

    _event_dispatcher = EventDispatcher()

    def __init__(self, patience: Patience, send: Callable[[Sequence[Command]], Awaitable[list[Any]]]) -> None:
        self._patience = patience
        self._send = send
        self._commands: list[Command] = []

    def execute_command(self, *args: Any, **options: Any) -> "Batch":
        self._commands.append((args, options))
        return self

    async def execute(self) -> list[Any]:
        """Return the answers in the order of the commands."""
        return await self._patience.run(lambda: self._send(self._commands)) if self._commands else []


class ServerClient(Redis):
    """A client of one server, or of the primary that Sentinels name."""

    patience: Patience
    batches: Patience
    """Apart from `patience`, so that their places are, too."""
    sentinels: Sentinel | None

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self.patience.run(lambda: execute(self, *args, **options))

    def pipeline(self, transaction: bool = False, shard_hint: str | None = None) -> Pipeline:
        return cast("Pipeline", Batch(self.batches, self._send))

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Sequence[str]) -> tuple[Any, int]:
        """Run a function, then wait for a replica; return the answer, and how many replicas have it."""
        command = ("FCALL", function, len(keys), *keys, *args)
        return await self.batches.run(lambda: answer_saved(self, command))

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        """Return what is new in the streams; wait for it for a while."""
        return to_streams(await self.xread(cast("Any", dict(after)), count=count, block=round(seconds * 1000)))

    async def fits(self) -> bool:
        """Whether the server is of the kind that the address says."""
        return not (await self.info("cluster")).get("cluster_enabled")

    async def replication(self, key: str) -> Mapping[str, Any]:
        """Return the section `replication` of what the key's node says of itself."""
        return cast("Mapping[str, Any]", await self.info("replication"))

    def place(self, key: str) -> str:
        """Return the name of the key's node."""
        return ""

    async def refresh(self, fault: BaseException) -> None:
        """Let go of idle connections to what may not be the primary any more."""
        if isinstance(fault, ReadOnlyError | ClusterDownError | RedisTimeoutError | TimeoutError):
            await self.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        if self.sentinels is not None:
            await self.sentinels.aclose()

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        pipe = Redis.pipeline(self, transaction=False)
        for args, options in commands:
            pipe.execute_command(*args, **options)
        return await pipe.execute()


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
        sentinels = Sentinel(list(address.hosts), sentinel_kwargs=_sentinel_options(address))  # type: ignore[no-untyped-call]
        pool = _sentinel_pool(address.service, sentinels, **options, **_tls(address))
    elif address.socket:
        del options["socket_keepalive"]
        pool = ConnectionPool(connection_class=UnixDomainSocketConnection, path=address.socket, **options)
    else:
        host, port = address.hosts[0]
        options |= {"host": host, "port": port, **address.tls_options}
        pool = ConnectionPool(connection_class=SSLConnection if address.tls else Connection, **options)
    client = cast("ServerClient", ServerClient.from_pool(pool))
    client.sentinels = sentinels
    client.patience = Patience(places, client.refresh, answer)
    client.batches = Patience(places, client.refresh, answer)
    return client


def connection_options(address: RedisAddress) -> dict[str, Any]:
    """Return what all connections have in common. Limits and attempts are `Patience`'s, so that they count once."""
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
    """Return what XREAD answers in either version of the protocol."""
    return cast("Streams", list(answer.items()) if isinstance(answer, dict) else answer or [])


def _sentinel_options(address: RedisAddress) -> dict[str, Any]:
    limits = {"socket_timeout": _SENTINEL_SECONDS, "socket_connect_timeout": _SENTINEL_SECONDS}
    return {**connection_options(address), **_login(address.sentinel_login), **limits, **_tls(address)}


def _tls(address: RedisAddress) -> dict[str, Any]:
    return {"ssl": True, **address.tls_options} if address.tls else {}


def _login(login: Login) -> dict[str, str | None]:
    return {"username": login.username, "password": login.password}
