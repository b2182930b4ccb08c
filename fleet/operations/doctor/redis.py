"""Redis: does it answer, keep what it is given, throw nothing away, and hold this version's functions?"""

import re

from fleet.adapters.redis.client.examination import Server, examine_servers
from fleet.ground.errors import ConfigError, Unavailable
from fleet.operations.doctor.finding import Finding, Findings, judge, ok, problem, skipped, warning, wrong
from fleet.operations.doctor.site import SiteUnderTest

_OLDEST = {"Redis": (7, 0), "Valkey": (8, 0)}
_SLOW, _TOO_SLOW = 0.005, 0.05
"""Seconds of an answer: a turn asks about a dozen times before the first sentence is heard."""


async def examine(site: SiteUnderTest) -> Findings:
    if site.settings.redis_url is None:
        where = f"no Redis is named, and no `fleet up` with its own runs with its data in {site.settings.data_dir}"
        yield skipped("redis.reach", where, "set FLEET_REDIS_URL")
        return
    if site.store is None:
        yield _unopened(site)
        return
    try:
        servers = await examine_servers(site.store, site.now)
    except Unavailable as error:
        yield problem("redis.reach", str(error), "Is it running? FLEET_REDIS_URL names it; a firewall may be between")
        return
    for server in servers:
        for finding in _judge(server):
            yield finding


def _unopened(site: SiteUnderTest) -> Finding:
    fault = site.faults["redis_url"]
    if isinstance(fault, ConfigError):
        return wrong("redis.reach", str(fault), "Correct FLEET_REDIS_URL: scheme, name and password")
    advice = "Is it running? FLEET_REDIS_URL names it; for TLS with a private authority set FLEET_TLS_CA"
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
            "Use Redis 7 or Valkey 8, or later, and name it in FLEET_REDIS_URL",
        ),
        judge(
            "redis.role",
            server.role == "master",
            ("it takes writes", "it is a replica: nothing can be written"),
            "FLEET_REDIS_URL must name the primary, or Sentinels that know it: redis+sentinel://…",
        ),
        _eviction(server),
        _persistence(server),
        _functions(server),
        _latency(server),
    ]


def _eviction(server: Server) -> Finding:
    if server.policy == "noeviction":
        return ok("redis.eviction", "nothing is thrown away when memory is full")
    advice = "Set `maxmemory-policy noeviction` (redis.conf, or CONFIG SET): sessions, bindings and calls would vanish"
    if server.limit:
        return problem("redis.eviction", f"maxmemory-policy is {server.policy} with a limit of memory", advice)
    return warning("redis.eviction", f"maxmemory-policy is {server.policy}, though there is no maxmemory yet", advice)


def _persistence(server: Server) -> Finding:
    if server.failing:
        advice = "Is its disk full, or its folder not writable? Its log says more; until then it may refuse to write"
        return problem("redis.persistence", f"the last writing to disk failed: {server.failing}", advice)
    if server.appends:
        return ok("redis.persistence", "it keeps an append-only file")
    advice = "Set `appendonly yes`: bindings, revocations and calls under way are in Redis only"
    if server.snapshots is False:
        return warning("redis.persistence", "a restart of Redis forgets everything", advice)
    return warning("redis.persistence", "a crash of Redis forgets all since its last snapshot", advice)


def _functions(server: Server) -> Finding:
    if server.functions == "current":
        return ok("redis.functions", "the functions of this version are loaded")
    if server.functions == "none":
        return warning(
            "redis.functions", "fleet's functions are not loaded", "They are when the first worker, edge or api starts"
        )
    return problem(
        "redis.functions",
        "the functions are those of another version of fleet only",
        "Each process loads its own, so none of this version works here: end all of other versions, then "
        "restart one worker of this version. FLEET_REDIS_URL may also name another site's Redis",
    )


def _latency(server: Server) -> Finding:
    message = f"it answers within {server.answer * 1000:.1f} ms"
    advice = "Bring Redis nearer (same network), and look for slow commands (SLOWLOG) and swapping"
    if server.answer > _TOO_SLOW:
        return problem("redis.latency", message, advice)
    return warning("redis.latency", message, advice) if server.answer > _SLOW else ok("redis.latency", message)
