"""Compare the clocks of Redis and of the api with this machine's, and check the time zone that devices get."""

from datetime import UTC, timedelta

from fleet.adapters.redis.client.examination import examine_servers
from fleet.core.finding import Finding, Findings, ok, problem, skipped, warning
from fleet.ground.errors import Unavailable
from fleet.ground.local_time import machine_zone, offset
from fleet.operations.doctor.site import SiteUnderTest

NOTABLE, HARMFUL = timedelta(seconds=2), timedelta(seconds=30)

_ADVICE = (
    "Run a time service (chrony, systemd-timesyncd) on every machine. Wrong clocks make certificates invalid, give "
    "devices a wrong time, and mix up the order of a device's connections"
)


async def examine(site: SiteUnderTest) -> Findings:
    apart: dict[str, timedelta] = {}
    within: dict[str, timedelta] = {}
    if site.store is not None:
        try:
            servers = await examine_servers(site.store, site.now)
            worst = max(servers, key=lambda one: abs(one.ahead))
            apart["Redis"], within["Redis"] = timedelta(seconds=worst.ahead), timedelta(seconds=worst.within)
        except Unavailable as error:
            yield skipped("clock.redis", str(error), "see redis.reach")
    reply = await site.bootstrapped()
    if reply.ahead is not None:
        apart["the api"], within["the api"] = reply.ahead, reply.within
    for who, check in (("Redis", "clock.redis"), ("the api", "clock.api")):
        if who in apart:
            yield judge_clock(check, who, apart[who], within[who])
        elif who == "the api":
            yield skipped(check, "the api did not answer", "see api.reach")
    yield _zone(site, reply.offset)
    far = all(abs(one) > HARMFUL for one in apart.values())
    if len(apart) == 2 and far and abs(apart["Redis"] - apart["the api"]) - sum(within.values(), timedelta()) < NOTABLE:
        yield problem("clock.own", "Redis and the api agree, so this machine's clock is wrong", _ADVICE)


def _zone(site: SiteUnderTest, given: int | None) -> Finding:
    """Judge the time zone that devices get: by the api's answer, else by the settings."""
    named, now = site.settings.timezone, site.now()
    wanted, machine = offset(named, now) or 0, offset(machine_zone(), now) or 0
    advice = "Set FLEET_TIMEZONE to the zone of the devices, such as Europe/Berlin, for api, worker and gateway"
    shown = f"devices show {now.astimezone(UTC) + timedelta(minutes=wanted if given is None else given):%H:%M}"
    if given not in (None, wanted):
        why = f"{shown} ({_utc(given or 0)}), but FLEET_TIMEZONE here is {named} ({_utc(wanted)})"
        return problem("clock.zone", why, f"{advice}; all processes need the same")
    chosen = "timezone" in site.settings.model_fields_set
    if chosen and machine and wanted != machine:
        why = f"{shown} ({named}, FLEET_TIMEZONE), but the time zone of this machine is {machine_zone()}"
        return warning("clock.zone", why, f"{advice}. `fleet devices timezone` sets that of one device")
    whose = (
        f"FLEET_TIMEZONE; this machine has {machine_zone()}" if chosen else "as this machine, FLEET_TIMEZONE is not set"
    )
    return ok("clock.zone", f"{shown} now ({named}, {whose})")


def _utc(minutes: int) -> str:
    return f"UTC{minutes / 60:+g} h"


def judge_clock(check: str, who: str, ahead: timedelta, within: timedelta) -> Finding:
    """Return the finding about a clock that is `ahead` of this machine's, plus or minus `within`."""
    far = max(abs(ahead) - within, timedelta())
    side = "ahead of" if ahead > timedelta() else "behind"
    message = f"the clock of {who} is {abs(ahead.total_seconds()):.1f} s {side} this machine's"
    if far > HARMFUL:
        return problem(check, message, _ADVICE)
    if far > NOTABLE:
        return warning(check, message, _ADVICE)
    return ok(check, f"the clocks of {who} and of this machine agree within {max(far.total_seconds(), 0.1):.1f} s")
