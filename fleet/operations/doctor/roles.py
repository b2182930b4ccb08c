"""Check workers and edges: does every shard have an owner, and is an edge ready?"""

from fleet.adapters.redis.client.examination import ShardOwners, read_shard_owners
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.core.finding import Finding, Findings, judge, ok, problem, skipped
from fleet.ground.errors import Unavailable
from fleet.ground.terminal import plural
from fleet.operations.doctor.site import SiteUnderTest


async def examine(site: SiteUnderTest) -> Findings:
    if site.store is None:
        yield skipped("roles.workers", "the check needs Redis", "see redis.reach")
        return
    try:
        owners = await read_shard_owners(site.store)
        edges = await Edges(site.store).live()
    except Unavailable as error:
        yield skipped("roles.workers", str(error), "see redis.reach")
        return
    yield _workers(owners, site.settings.shards)
    yield _edges(edges)


def _workers(found: ShardOwners, shards: int) -> Finding:
    if foreign := [shard for shard in found.owners if shard >= shards]:
        return problem(
            "roles.workers",
            f"shard {foreign[0]} has an owner, but FLEET_SHARDS is {shards} here",
            "Set FLEET_SHARDS to the same number for all processes",
        )
    owned = len(found.owners)
    if not owned:
        advice = "Start `fleet worker`. If one runs, its log shows why it owns no shard (Redis, broker, LLM_BASE_URL)"
        return problem("roles.workers", "no worker owns a shard, so no device is served", advice)
    return judge(
        "roles.workers",
        owned == shards,
        (
            f"all {shards} shards have an owner: {plural(len(set(found.owners.values())), 'worker')}",
            f"{shards - owned} of {shards} shards have no owner, so their devices are not served",
        ),
        "If a worker is starting or stopping, run this again. Set FLEET_SHARDS to the same number for all processes",
    )


def _edges(edges: list[EdgeRecord]) -> Finding:
    if not edges:
        return problem("roles.edges", "no edge runs, so there is no audio", "Start `fleet edge` with FLEET_UDP_PUBLIC")
    ready = [edge for edge in edges if not edge.draining]
    if not ready:
        return problem("roles.edges", "all edges are stopping", "Start another `fleet edge`")
    places = ", ".join(f"{edge.host or 'the host of bootstrap'}:{edge.port}" for edge in ready[:5])
    message = f"{plural(len(ready), 'edge')}, at {places}"
    if len({(edge.host, edge.port) for edge in ready}) < len(ready):
        advice = (
            "Give each edge an address of its own (FLEET_UDP_PUBLIC): only one of them gets the packets. No load "
            "balancer may distribute them. If an edge is being replaced, run this again"
        )
        return problem("roles.edges", f"several edges have the same address: {places}", advice)
    return ok("roles.edges", message)
