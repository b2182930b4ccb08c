"""Compare the clocks of Redis and of the api with this machine's."""

from datetime import timedelta

from fleet.adapters.redis.client.examination import examine_servers
from fleet.ground.errors import Unavailable
from fleet.operations.doctor.finding import Finding, Findings, ok, problem, skipped, warning
from fleet.operations.doctor.site import SiteUnderTest

NOTABLE, HARMFUL = timedelta(seconds=2), timedelta(seconds=30)

_ADVICE = (
    "Run a time service (chrony, systemd-timesyncd) on every machine. Wrong clocks make certificates invalid, give "
    "devices a wrong time, and mix up the order of a device's connections"
)


async def examine(site: SiteUnderTest) -> Findings:
    apart: dict[str, timedelta] = {}
    if site.store is not None:
        try:
            servers = await examine_servers(site.store, site.now)
            apart["Redis"] = max((timedelta(seconds=one.ahead) for one in servers), key=abs)
        except Unavailable as error:
            yield skipped("clock.redis", str(error), "see redis.reach")
    reply = await site.bootstrapped()
    if reply.ahead is not None:
        apart["the api"] = reply.ahead
    for who, check in (("Redis", "clock.redis"), ("the api", "clock.api")):
        if who in apart:
            yield _judge(check, who, apart[who], reply.within if who == "the api" else timedelta())
        elif who == "the api":
            yield skipped(check, "the api did not answer", "see api.reach")
    if len(apart) == 2 and all(abs(one) > HARMFUL for one in apart.values()) and _agree(list(apart.values())):
        yield problem("clock.own", "Redis and the api agree, so this machine's clock is wrong", _ADVICE)


def _agree(two: list[timedelta]) -> bool:
    return abs(two[0] - two[1]) < NOTABLE


def _judge(check: str, who: str, ahead: timedelta, within: timedelta) -> Finding:
    far = max(abs(ahead) - within, timedelta())
    side = "ahead of" if ahead > timedelta() else "behind"
    message = f"the clock of {who} is {abs(ahead.total_seconds()):.1f} s {side} this machine's"
    if far > HARMFUL:
        return problem(check, message, _ADVICE)
    if far > NOTABLE:
        return warning(check, message, _ADVICE)
    return ok(check, f"the clocks of {who} and of this machine agree within {max(far.total_seconds(), 0.1):.1f} s")
