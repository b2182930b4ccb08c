"""The state of Redis and of the workers, for `fleet doctor`. Read-only."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from fleet.adapters.redis.client.client import execute
from fleet.adapters.redis.client.functions import Functions, libraries
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import WORKERS
from fleet.wire.topics import SLOTS

_PINGS = 20
_LOOKS = 5
"""At its clock: the fastest answer tells most of it."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server that takes writes.

    `policy` is its maxmemory-policy, `limit` maxmemory in bytes (0: none), `used` its used memory in bytes, `folder`
    the folder of its files (empty: unknown), `snapshots` whether it has save points (None: unknown), `failing` the
    kinds of disk writes that failed last, `functions` which version's functions are loaded, `ahead` how many
    seconds its clock is ahead of ours, plus or minus `within`, `answer` the time of its fastest answer in seconds
    (slower answers may be caused by this process).
    """

    product: str
    version: str
    role: str
    policy: str
    limit: int
    used: int
    folder: str
    appends: bool
    snapshots: bool | None
    failing: str
    functions: Literal["current", "other", "none"]
    ahead: float
    within: float
    answer: float


@dataclass(frozen=True, slots=True)
class ShardOwners:
    """The owner of each shard, and how many workers announced themselves within the last minute.

    Shards beyond FLEET_SHARDS belong to processes with another FLEET_SHARDS.
    """

    owners: Mapping[int, str]
    workers: int


async def examine_servers(store: Store, now: Callable[[], datetime]) -> list[Server]:
    """Ask every server that takes writes; `now` is our clock.

    Raises:
        Unavailable: One did not answer.
    """
    nodes = await store.ask(store.client.primaries())
    return [await store.ask(_examine(node, store.functions, now)) for node in nodes]


async def read_shard_owners(store: Store) -> ShardOwners:
    """Return the owners of the shards.

    Raises:
        Unavailable: Redis did not answer.
    """
    pipe = store.client.pipeline(transaction=False)
    for shard in range(SLOTS):
        pipe.hget(store.keys.own(shard), "w")
    owners = await store.ask(cast("Awaitable[list[str | None]]", pipe.execute()))
    lately = datetime.now(UTC).timestamp() * 1000 - 60_000
    workers = await store.ask(store.client.zcount(WORKERS, lately, "+inf"))
    return ShardOwners({shard: owner for shard, owner in enumerate(owners) if owner}, workers)


async def _examine(node: Redis, own: Functions, now: Callable[[], datetime]) -> Server:
    info = await execute(node, "INFO")
    within, ahead = min([await _look(node, now) for _ in range(_LOOKS)])
    return Server(
        product="Valkey" if info.get("server_name") == "valkey" else "Redis",
        version=str(info.get("valkey_version") or info.get("redis_version") or "0"),
        role=str(info.get("role")),
        policy=str(info.get("maxmemory_policy")),
        limit=int(info.get("maxmemory") or 0),
        used=int(info.get("used_memory") or 0),
        folder=await _read_config(node, "dir") or "",
        appends=bool(info.get("aof_enabled")),
        snapshots=None if (points := await _read_config(node, "save")) is None else bool(points),
        failing=_failing(info),
        functions=await _compare(node, own),
        ahead=ahead,
        within=within,
        answer=min([await _time(node) for _ in range(_PINGS)]),
    )


async def _look(node: Redis, now: Callable[[], datetime]) -> tuple[float, float]:
    """Return the seconds up to which a look at a clock is right, and how far that clock is ahead of ours."""
    begun = now()
    clock = await execute(node, "TIME")
    within = (now() - begun) / 2
    return within.total_seconds(), int(clock[0]) + int(clock[1]) / 1e6 - (begun + within).timestamp()


async def _time(node: Redis) -> float:
    clock = asyncio.get_running_loop().time
    begun = clock()
    await execute(node, "PING")
    return clock() - begun


async def _read_config(node: Redis, name: str) -> str | None:
    try:
        found = await execute(node, "CONFIG GET", name)
    except ResponseError:
        return None  # hosted services often forbid CONFIG
    return str(found.get(name) or "") if isinstance(found, dict) else None


async def _compare(node: Redis, own: Functions) -> Literal["current", "other", "none"]:
    found = await libraries(node)
    if not found:
        return "none"
    return "current" if own.library in found else "other"


def _failing(info: Mapping[str, Any]) -> str:
    states = ("rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status")
    return ", ".join(state for state in states if info.get(state, "ok") != "ok")
