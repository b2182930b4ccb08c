"""Check Redis: does it answer, persist its data, evict nothing, and hold this version's functions?"""

import asyncio
import re
from pathlib import Path

from fleet.adapters.redis.client.examination import Server, examine_servers
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.client.url import parse_redis_url
from fleet.core.finding import Finding, Findings, judge, ok, problem, skipped, warning, wrong
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings
from fleet.ground.settings.tls import is_loopback
from fleet.operations.doctor.disk import judge_disk
from fleet.operations.doctor.site import SiteUnderTest

_OLDEST = {"Redis": (7, 0), "Valkey": (8, 0)}
_SLOW, _TOO_SLOW = 0.005, 0.05
"""Seconds of an answer; a turn waits for about a dozen answers before its first sentence is spoken."""

_MB = 1_000_000
_NEARLY = 0.9
_FULL = (
    "Raise maxmemory (redis.conf, or CONFIG SET maxmemory), or give Redis to fleet alone: `redis-cli --bigkeys` shows "
    "what else fills it"
)
_REFUSALS = {
    "maxmemory": _FULL,
    "MISCONF": "It could not save to its disk: free space in its folder (redis-cli CONFIG GET dir), or correct the "
    "rights of that; then run BGSAVE. Its log has the reason",
    "NOREPLICAS": "It has fewer replicas than min-replicas-to-write: start its replicas, or lower that setting",
    "read only": "FLEET_REDIS_URL must name the primary, or Sentinels that know it: redis+sentinel://…",
    "permission": "Allow the user of FLEET_REDIS_URL all keys and commands (ACL SETUSER … ~* &* +@all)",
}
"""What to do about each refusal of a write, by a part of its text."""


async def examine(site: SiteUnderTest) -> Findings:
    if site.settings.redis_url is None:
        message = f"no Redis is set, and no `fleet up` with its own Redis runs in {site.settings.data_dir}"
        yield skipped("redis.reach", message, "set FLEET_REDIS_URL")
        return
    if site.store is None:
        yield _unopened(site)
        return
    try:
        servers = await examine_servers(site.store, site.now)
    except Unavailable as error:
        advice = "Check that Redis runs, FLEET_REDIS_URL, and firewalls between"
        yield _refused(str(error)) or problem("redis.reach", str(error), advice)
        return
    local = _is_local(site.settings)
    for server in servers:
        for finding in _judge(server):
            yield finding
        if local and server.folder:
            yield await asyncio.to_thread(judge_disk, "redis.disk", Path(server.folder), "Redis")
    if all(server.role == "master" for server in servers):
        yield await _writes(site.store)


def _unopened(site: SiteUnderTest) -> Finding:
    fault = site.faults["redis_url"]
    if isinstance(fault, ConfigError):
        return wrong("redis.reach", str(fault), "Correct FLEET_REDIS_URL: scheme, name and password")
    if refused := _refused(str(fault)):
        return refused
    advice = "Check that Redis runs, and FLEET_REDIS_URL. For TLS with a private authority, set FLEET_TLS_CA"
    return problem("redis.reach", str(fault), advice)


def _judge(server: Server) -> list[Finding]:
    name = f"{server.product} {server.version}"
    found = tuple(int(part) for part in re.findall(r"\d+", server.version)[:2])
    oldest = _OLDEST[server.product]
    return [
        ok("redis.reach", f"{name} answers"),
        judge(
            "redis.version",
            found >= oldest,
            (f"{name} has functions", f"{name} is too old"),
            "Use Redis 7, Valkey 8 or later, and set FLEET_REDIS_URL to it",
        ),
        judge(
            "redis.role",
            server.role == "master",
            ("it is a primary", "it is a replica and refuses writes"),
            "FLEET_REDIS_URL must name the primary, or Sentinels that know it: redis+sentinel://…",
        ),
        _memory(server),
        _eviction(server),
        _persistence(server),
        _functions(server),
        _latency(server),
    ]


def _is_local(settings: Settings) -> bool:
    """Whether Redis runs on this machine, so that its folder can be examined."""
    address = parse_redis_url(settings.redis_url or "", settings.tls_ca)
    return bool(address.socket) or all(is_loopback(host) for host, _ in address.hosts)


async def _writes(store: Store) -> Finding:
    """Try a write; Redis answers reads even if it refuses writes."""
    try:
        await store.ping_writes()
    except Unavailable as error:
        return _refused(str(error)) or problem("redis.writes", f"a write failed: {error}", "See the log of Redis")
    return ok("redis.writes", "it accepts writes")


def _refused(why: str) -> Finding | None:
    """Return the finding about a refusal of writes; None if the text is none that is known."""
    advice = next((advice for mark, advice in _REFUSALS.items() if mark in why), None)
    return problem("redis.writes", why, advice) if advice else None


def _memory(server: Server) -> Finding:
    used = f"{server.used / _MB:.1f} MB"
    if not server.limit:
        return ok("redis.memory", f"{used} are used, and maxmemory is not set")
    message = f"{used} of {server.limit / _MB:.1f} MB (maxmemory) are used"
    if server.used < _NEARLY * server.limit:
        return ok("redis.memory", message)
    full = server.used >= server.limit
    return (problem if full else warning)("redis.memory", f"Redis is {'' if full else 'nearly '}full: {message}", _FULL)


def _eviction(server: Server) -> Finding:
    if server.policy == "noeviction":
        return ok("redis.eviction", "Redis evicts nothing when its memory is full")
    advice = (
        "Set `maxmemory-policy noeviction` (redis.conf, or CONFIG SET). Otherwise Redis deletes sessions, bindings and "
        "calls when its memory is full"
    )
    if server.limit:
        return problem("redis.eviction", f"maxmemory-policy is {server.policy}, and maxmemory is set", advice)
    return warning("redis.eviction", f"maxmemory-policy is {server.policy}; maxmemory is not set", advice)


def _persistence(server: Server) -> Finding:
    if server.failing:
        advice = "Check its disk, the rights of its folder, and its log. Redis may refuse all writes until this works"
        return problem("redis.persistence", f"the last write to disk failed: {server.failing}", advice)
    if server.appends:
        return ok("redis.persistence", "it keeps an append-only file")
    advice = "Set `appendonly yes`, because bindings, revocations and pending calls are stored in Redis only"
    if server.snapshots is False:
        return warning("redis.persistence", "a restart of Redis loses all data", advice)
    return warning("redis.persistence", "a crash of Redis loses all data since its last snapshot", advice)


def _functions(server: Server) -> Finding:
    if server.functions == "current":
        return ok("redis.functions", "the functions of this version are loaded")
    if server.functions == "none":
        return warning(
            "redis.functions",
            "fleet's functions are not loaded",
            "Start a worker, an edge or the api: each loads the functions",
        )
    return problem(
        "redis.functions",
        "only functions of another version of fleet are loaded",
        "Each process loads the functions of its version, so no process of this version uses this Redis. Stop all "
        "processes of other versions, then restart one worker of this version. Or FLEET_REDIS_URL is another site's "
        "Redis: correct it",
    )


def _latency(server: Server) -> Finding:
    message = f"it answers within {server.answer * 1000:.1f} ms"
    advice = "Move Redis into the same network, and look for slow commands (SLOWLOG) and swapping"
    if server.answer > _TOO_SLOW:
        return problem("redis.latency", message, advice)
    return warning("redis.latency", message, advice) if server.answer > _SLOW else ok("redis.latency", message)
