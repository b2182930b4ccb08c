"""Examine a site: all parts at the same time, each with a time limit; a failing part becomes a finding."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.devices.forgetting import forget
from fleet.core.finding import Finding, Findings, problem
from fleet.ground.errors import FleetError
from fleet.ground.tasks import isolate
from fleet.operations.doctor import api, broker, certificates, clock, machine, models, redis, roles, session, settings
from fleet.operations.doctor.site import SiteUnderTest

Part = Callable[[SiteUnderTest], Findings]

PARTS: Final[Mapping[str, tuple[Part, float]]] = {
    "settings": (settings.examine, 45.0),
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
"""The parts of an examination, each with its longest time in seconds."""
_TIDY_SECONDS = 10.0


async def examine(site: SiteUnderTest, only: frozenset[str] = frozenset()) -> list[Finding]:
    """Return all findings, in the order of `PARTS`.

    Args:
        site: The site.
        only: Names of parts; empty for all. The api is always asked, because other parts need its answer.
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
    """Run a part; an unexpected exception becomes a finding."""
    ended = False

    async def run() -> None:
        nonlocal ended
        await work
        ended = True

    await isolate(f"doctor {name}", run())
    if not ended:
        advice = "This is a fault of the doctor: please report it, with the log lines above"
        found[name].append(problem(f"{name}.unfinished", "the examination failed", advice))


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
    """Delete the records of the doctor's devices."""
    if site.store is None:
        return
    async with asyncio.timeout(_TIDY_SECONDS):
        await Activations(site.store).withdraw(site.macs[0])
        await forget(site.store, site.macs)
