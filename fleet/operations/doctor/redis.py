"""Check Redis: does it answer, persist its data, evict nothing, and hold this version's functions?"""

import re

from fleet.adapters.redis.client.examination import Server, examine_servers
from fleet.ground.errors import ConfigError, Unavailable
from fleet.operations.doctor.finding import Finding, Findings, judge, ok, problem, skipped, warning, wrong
from fleet.operations.doctor.site import SiteUnderTest

_OLDEST = {"Redis": (7, 0), "Valkey": (8, 0)}
_SLOW, _TOO_SLOW = 0.005, 0.05
"""Seconds of an answer; a turn waits for about a dozen answers before its first sentence is spoken."""


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
        yield problem("redis.reach", str(error), "Check that Redis runs, FLEET_REDIS_URL, and firewalls between")
        return
    for server in servers:
        for finding in _judge(server):
            yield finding


def _unopened(site: SiteUnderTest) -> Finding:
    fault = site.faults["redis_url"]
    if isinstance(fault, ConfigError):
        return wrong("redis.reach", str(fault), "Correct FLEET_REDIS_URL: scheme, name and password")
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
            ("it accepts writes", "it is a replica and refuses writes"),
            "FLEET_REDIS_URL must name the primary, or Sentinels that know it: redis+sentinel://…",
        ),
        _eviction(server),
        _persistence(server),
        _functions(server),
        _latency(server),
    ]


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
