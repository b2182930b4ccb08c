"""Workers and edges: does every device have both?"""

from fleet.adapters.redis.client.examination import ShardOwners, read_shard_owners
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.ground.errors import Unavailable
from fleet.operations.doctor.finding import Finding, Findings, judge, ok, problem, skipped, warning
from fleet.operations.doctor.site import SiteUnderTest


async def examine(site: SiteUnderTest) -> Findings:
    if site.store is None:
        yield skipped("roles.workers", "only Redis knows who works", "see redis.reach")
        return
    try:
        force = await read_shard_owners(site.store)
        edges = await Edges(site.store).live()
    except Unavailable as error:
        yield skipped("roles.workers", str(error), "see redis.reach")
        return
    yield _workers(force, site.settings.shards)
    yield _edges(edges)


def _workers(force: ShardOwners, shards: int) -> Finding:
    if foreign := [shard for shard in force.owners if shard >= shards]:
        return problem(
            "roles.workers",
            f"shard {foreign[0]} has an owner, but there are {shards} here",
            "FLEET_SHARDS must be equal for all processes",
        )
    owned = len(force.owners)
    if not owned:
        advice = "Start `fleet worker`; its log says why it owns nothing (broker, LLM_BASE_URL)"
        return problem("roles.workers", "no worker owns a shard: no device is served", advice)
    return judge(
        "roles.workers",
        owned == shards,
        (
            f"{len(set(force.owners.values()))} workers own all {shards} shards",
            f"{shards - owned} shards have no owner",
        ),
        "Their devices are not served: is a worker starting or ending just now? FLEET_SHARDS must be equal for all",
    )


def _edges(edges: list[EdgeRecord]) -> Finding:
    if not edges:
        return problem("roles.edges", "no edge lives: there is no audio", "Start `fleet edge` with FLEET_UDP_PUBLIC")
    ready = [edge for edge in edges if not edge.draining]
    if not ready:
        return problem("roles.edges", "every edge is about to end", "Start another `fleet edge`")
    places = ", ".join(f"{edge.host or 'the host of bootstrap'}:{edge.port}" for edge in ready[:5])
    message = f"{len(ready)} edges, at {places}"
    if len({(edge.host, edge.port) for edge in ready}) < len(ready):
        advice = "Each edge needs an address of its own: FLEET_UDP_PUBLIC; packets must not be spread over several"
        return warning("roles.edges", f"several edges have one address: {places}", advice)
    return ok("roles.edges", message)
