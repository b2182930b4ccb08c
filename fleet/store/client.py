"""redis-py's clients with fleet's limits on them; nothing else in the store knows which kind of Redis it talks to."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.client import Pipeline
from redis.asyncio.cluster import ClusterNode, ClusterPipeline
from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.commands import AsyncCoreCommands
from redis.event import EventDispatcher
from redis.exceptions import ClusterDownError, ReadOnlyError, RedisClusterException
from redis.exceptions import TimeoutError as RedisTimeoutError

from fleet.store.patience import ANSWER_SECONDS, CONNECT_SECONDS, NO_CLUSTER, Patience
from fleet.store.url import Login, RedisAddress

WAIT_MS = 50
"""How long a primary waits for a replica's acknowledgement."""
POLL_SECONDS = 0.02
"""Pause between two looks at several streams of a Cluster, whose nodes cannot block on more than one slot."""

_HEALTH_SECONDS = 30
_SENTINEL_SECONDS = 0.5

Streams = list[tuple[str, list[tuple[str, dict[str, str]]]]]


_execute: Callable[..., Any] = Redis.execute_command
_pool: Callable[..., ConnectionPool] = SentinelConnectionPool
"""Untyped in redis-py."""


class Batch(AsyncCoreCommands):
    """Commands that are sent together; they may live on several nodes, and are no transaction."""

    _event_dispatcher = EventDispatcher()

    def __init__(self, patience: Patience, make: Callable[[], Any]) -> None:
        self._patience = patience
        self._make = make
        self._commands: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def execute_command(self, *args: Any, **options: Any) -> "Batch":
        self._commands.append((args, options))
        return self

    async def execute(self) -> list[Any]:
        """Return the answers in the order of the commands."""
        return await self._patience.run(self._once) if self._commands else []

    async def _once(self) -> list[Any]:
        pipe = self._make()
        for args, options in self._commands:
            pipe.execute_command(*args, **options)
        return cast("list[Any]", await pipe.execute())


class ServerClient(Redis):
    """A client of one server, or of the primary that Sentinels name."""

    patience: Patience
    batches: Patience
    sentinels: Sentinel | None = None

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self.patience.run(lambda: _execute(self, *args, **options))

    def pipeline(self, transaction: bool = False, shard_hint: str | None = None) -> Pipeline:
        return cast("Pipeline", Batch(self.batches, lambda: Redis.pipeline(self, transaction=False)))

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Sequence[str]) -> tuple[Any, int]:
        """Run a function, then wait for a replica; return the answer, and how many replicas have it."""

        async def once() -> tuple[Any, int]:
            pipe = Redis.pipeline(self, transaction=False)
            pipe.execute_command("FCALL", function, len(keys), *keys, *args)
            pipe.execute_command("WAIT", 1, WAIT_MS)
            answer, replicas = await pipe.execute()
            return answer, int(replicas)

        return await self.batches.run(once)

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        """Return what is new in the streams; wait for it for a while."""
        return _streams(await self.xread(cast("Any", dict(after)), count=count, block=round(seconds * 1000)))

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
        if isinstance(fault, ReadOnlyError | ClusterDownError | RedisTimeoutError | TimeoutError):
            await self.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        if self.sentinels is not None:
            await self.sentinels.aclose()


class ClusterClient(RedisCluster):
    """A client of a Cluster; the same methods."""

    patience: Patience
    batches: Patience

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self.patience.run(lambda: self._execute(*args, **options))

    async def _execute(self, *args: Any, **options: Any) -> Any:
        if args[0] == "FCALL" and "target_nodes" not in options:
            # redis-py would ask a server for every call which of its words are keys.
            await self.initialize()
            options["target_nodes"] = self.get_node_from_key(args[3])
        return await RedisCluster.execute_command(self, *args, **options)

    def pipeline(self, transaction: Any | None = None, shard_hint: Any | None = None) -> ClusterPipeline:
        return cast("ClusterPipeline", Batch(self.batches, lambda: RedisCluster.pipeline(self)))

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Sequence[str]) -> tuple[Any, int]:
        """Run a function, then wait for a replica; return the answer, and how many replicas have it."""

        async def once() -> tuple[Any, int]:
            await self.initialize()
            node = self.get_node_from_key(keys[0])
            pipe = RedisCluster.pipeline(self)
            pipe.execute_command("FCALL", function, len(keys), *keys, *args, target_nodes=node)
            pipe.execute_command("WAIT", 1, WAIT_MS, target_nodes=node)
            # Sent on to another node, the function would be acknowledged by the replicas of the wrong one.
            answer, replicas = await pipe.execute(allow_redirections=False)
            return answer, int(replicas)

        return await self.batches.run(once)

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        """Return what is new in the streams; wait for it for a while."""
        if len(after) == 1:
            return await self.patience.run(lambda: self._block(after, count, seconds))
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            found = await self.batches.run(lambda: self._look(after, count))
            if found or clock() >= until:
                return found
            await asyncio.sleep(POLL_SECONDS)

    async def _block(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        await self.initialize()
        ((key, last),) = after.items()
        words = ("XREAD", "COUNT", count, "BLOCK", round(seconds * 1000), "STREAMS", key, last)
        node = self.get_node_from_key(key)
        return _streams(await RedisCluster.execute_command(self, *words, target_nodes=node))

    async def _look(self, after: Mapping[str, str], count: int) -> Streams:
        await self.initialize()
        pipe = RedisCluster.pipeline(self)
        for key, last in after.items():
            node = self.get_node_from_key(key)
            pipe.execute_command("XREAD", "COUNT", count, "STREAMS", key, last, target_nodes=node)
        return [stream for answer in await pipe.execute() for stream in _streams(answer)]

    async def fits(self) -> bool:
        """Whether the server is of the kind that the address says."""
        try:
            await self.patience.run(self.initialize)
        except RedisClusterException as error:
            if NO_CLUSTER in str(error):
                return False
            raise
        return True

    async def replication(self, key: str) -> Mapping[str, Any]:
        """Return the section `replication` of what the key's node says of itself."""

        async def once() -> Any:
            await self.initialize()
            return await RedisCluster.execute_command(
                self, "INFO", "replication", target_nodes=self.get_node_from_key(key)
            )

        return cast("Mapping[str, Any]", await self.patience.run(once))

    def place(self, key: str) -> str:
        """Return the name of the key's node."""
        node = self.get_node_from_key(key)
        return node.name if node else ""

    async def refresh(self, fault: BaseException) -> None:
        await self.nodes_manager.initialize()

    async def aclose(self) -> None:
        await super().aclose()
        # After a fault redis-py takes itself for closed and would leave its connections open.
        await self.nodes_manager.aclose()
        await self.nodes_manager.aclose("startup_nodes")


def connect(address: RedisAddress, places: int, answer: float = ANSWER_SECONDS) -> ServerClient:
    """Return a client; it connects when it is used.

    Args:
        address: Of any kind. The client of a Cluster has all that the store uses of a `ServerClient`.
        places: Most connections to one node; a batch and a command count apart.
        answer: Longest time of one attempt in seconds.
    """
    client = _cluster(address, places, answer) if address.kind == "cluster" else _server(address, places)
    client.patience = Patience(places, client.refresh, answer)
    # A batch may send a redirected command on by itself: it must not wait for a place that a batch holds.
    client.batches = Patience(places, client.refresh, answer)
    return cast("ServerClient", client)


def _server(address: RedisAddress, places: int) -> ServerClient:
    options = {**_options(address), "db": address.database, "max_connections": 2 * places}
    sentinels = None
    if address.kind == "sentinel":
        sentinels = Sentinel(list(address.hosts), sentinel_kwargs=_sentinel_options(address))  # type: ignore[no-untyped-call]
        pool = _pool(address.service, sentinels, **options, **_tls(address))
    elif address.socket:
        pool = ConnectionPool(connection_class=UnixDomainSocketConnection, path=address.socket, **options)
    else:
        host, port = address.hosts[0]
        options |= {"host": host, "port": port, **address.tls_options}
        pool = ConnectionPool(connection_class=SSLConnection if address.tls else Connection, **options)
    client = cast("ServerClient", ServerClient.from_pool(pool))
    client.sentinels = sentinels
    return client


def _cluster(address: RedisAddress, places: int, answer: float) -> ClusterClient:
    nodes = [ClusterNode(host, port) for host, port in address.hosts]
    # Its own limit must come first: it is what makes redis-py look for the node's successor.
    options = {**_options(address), "socket_timeout": answer * 0.8}
    return ClusterClient(startup_nodes=nodes, max_connections=2 * places, **options, **_tls(address))


def _options(address: RedisAddress) -> dict[str, Any]:
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


def _sentinel_options(address: RedisAddress) -> dict[str, Any]:
    limits = {"socket_timeout": _SENTINEL_SECONDS, "socket_connect_timeout": _SENTINEL_SECONDS}
    return {**_options(address), **_login(address.sentinel_login), **limits, **_tls(address)}


def _tls(address: RedisAddress) -> dict[str, Any]:
    return {"ssl": True, **address.tls_options} if address.tls else {}


def _login(login: Login) -> dict[str, str | None]:
    return {"username": login.username, "password": login.password}


def _streams(answer: Any) -> Streams:
    return cast("Streams", list(answer.items()) if isinstance(answer, dict) else answer or [])
