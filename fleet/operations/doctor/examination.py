"""Examining a site: everything side by side, each part within its time, and nothing of it raises."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

from fleet.adapters.redis.devices.view import forget
from fleet.ground.errors import FleetError
from fleet.ground.tasks import isolate
from fleet.operations.doctor import api, broker, certificates, clock, machine, models, redis, roles, session, settings
from fleet.operations.doctor.finding import Finding, Findings, problem
from fleet.operations.doctor.site import SiteUnderTest

Part = Callable[[SiteUnderTest], Findings]

PARTS: Final[Mapping[str, tuple[Part, float]]] = {
    "settings": (settings.examine, 5.0),
    "broker": (broker.examine, 45.0),
    "redis": (redis.examine, 20.0),
    "roles": (roles.examine, 20.0),
    "api": (api.examine, 15.0),
    "session": (session.examine, 45.0),
    "llm": (models.examine_llm, 45.0),
    "speech": (models.examine_speech, 90.0),
    "certificates": (certificates.examine, 30.0),
    "clock": (clock.examine, 30.0),
    "machine": (machine.examine, 5.0),
}
"""What is examined, how, and the longest time in seconds."""
_TIDY_SECONDS = 10.0


async def examine(site: SiteUnderTest, only: frozenset[str] = frozenset()) -> list[Finding]:
    """Return all findings, in the order of `PARTS`.

    Args:
        site: What is examined.
        only: Names of parts; all of them without any. The api is always asked, for others need its answer.
    """
    found: dict[str, list[Finding]] = {name: [] for name in PARTS}
    wanted = (only or frozenset(PARTS)) | {"api"}
    try:
        async with asyncio.TaskGroup() as group:
            for name, (part, seconds) in PARTS.items():
                if name in wanted:
                    group.create_task(_watch(name, _collect(name, part(site), seconds, found), found), name=name)
    finally:
        await isolate("tidying up", _tidy(site))
    return [finding for name in PARTS if name in (only or PARTS) for finding in found[name]]


async def _watch(name: str, work: Awaitable[None], found: dict[str, list[Finding]]) -> None:
    """Let a part run; one that ends in a way that nobody thought of is a finding, too."""
    ended = False

    async def run() -> None:
        nonlocal ended
        await work
        ended = True

    await isolate(f"doctor {name}", run())
    if not ended:
        advice = "The doctor failed here: please report it, with the lines above"
        found[name].append(problem(f"{name}.unfinished", "the examination broke off", advice))


async def _collect(name: str, findings: Findings, seconds: float, found: dict[str, list[Finding]]) -> None:
    try:
        async with asyncio.timeout(seconds), aclosing(findings) as each:
            async for finding in each:
                found[name].append(finding)
    except TimeoutError:
        advice = "Something does not answer; see the other findings, and run this again"
        found[name].append(problem(f"{name}.unfinished", f"not done within {seconds:g} s", advice))
    except (FleetError, OSError) as error:
        advice = "See the other findings, and run this again"
        found[name].append(problem(f"{name}.unfinished", str(error) or type(error).__name__, advice))


async def _tidy(site: SiteUnderTest) -> None:
    """Leave no trace of the doctor's devices."""
    if site.store is None:
        return
    async with asyncio.timeout(_TIDY_SECONDS):
        await forget(site.store, site.macs[:3])
