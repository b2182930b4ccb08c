"""`scripts/bench announcements`: one text to many idle devices, with a real edge and a speech server of the test."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.console import Console

from fleet.client import announcements, jobs
from fleet.ground.errors import Unavailable
from fleet.wire.control.announcements import AnnouncementRequest, AnnouncementState
from fleet.workbench.bench.announcement_verdict import AnnouncementVerdict, judge_receipts
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.bench.job_site import QUERY, JobSite, job_site
from fleet.workbench.bench.job_verdict import Result
from fleet.workbench.bench.jobs import BOOTING, settle, us_each
from fleet.workbench.bench.pace import rate_of, times_of
from fleet.workbench.sim.crowd.crowd import CrowdPlan
from fleet.workbench.sim.crowd.shares import Shares
from tests.support.openai_server import Answer, run_openai_server
from tests.support.scripted_server import tone

TEXT: Final = "Dinner is ready."
CLIP_SECONDS: Final = 3.0
WINDOW: Final = 10_000
MARK: Final = 0.999
RATE_MARK: Final = 500.0
"""Marks: the share of idle devices that take the clip, and how many take it in a second."""
_POLL_SECONDS = 0.5
_END_SECONDS = 300.0
_SLOWER = 20.0


@dataclass(frozen=True, slots=True)
class AnnouncementFigures:
    """All that was measured."""

    devices: int
    online: int
    idle: int
    """Devices with firmware 2.5 that play nothing."""
    busy: int
    old: int
    verdict: AnnouncementVerdict
    taken: int
    """Clips that devices got."""
    rate: float
    """Of them in a second, without the first and the last tenth."""
    syntheses: int
    seconds: float
    """From the request until every device has its receipt."""
    control_idle: float
    cpu_us: Mapping[str, float]
    """CPU of a delivery by part, in microseconds, without what the part uses at rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementsExperiment(Experiment[AnnouncementFigures]):
    """One announcement to a crowd."""

    name: ClassVar[str] = "announcements"

    devices: int
    busy: int
    old: int
    rate: float
    workers: int

    async def measure(self, progress: Progress) -> AnnouncementFigures:
        async with AsyncExitStack() as stack:
            progress("starting")
            models = stack.enter_context(run_openai_server())
            models.speech(Answer([tone(CLIP_SECONDS)], kind="audio/pcm"))
            shares = Shares(newer=1 - self.old / self.devices)
            plan = CrowdPlan("", self.devices, rate=150.0, shares=shares, at_once=BOOTING)
            site = await stack.enter_async_context(job_site(plan, self.workers, voice=models.url))
            progress(f"{self.devices} devices boot")
            online = await site.crowd.boot(120 + self.devices / 20)
            await site.until_registered(self.devices, online)
            newer = await site.crowd.occupy(self.busy)
            await site.testbed.rest()
            await settle(site)
            progress("an announcement")
            idle = site.meter.idle["control"]
            measured = await site.meter.during(self._announce(site))
            job = measured.result.job.id
            results = [
                Result(one.device, one.state, one.attempts, one.text)
                async for page in site.client.pages(jobs.executions(job))
                for one in page.items
            ]
            told = await site.crowd.report()
            times = times_of(told["fetches"])
            asked = Counter(one.path.rpartition("/")[2] for one in models.requests)
            return AnnouncementFigures(
                devices=self.devices,
                online=online,
                idle=newer - self.busy,
                busy=self.busy,
                old=self.devices - newer,
                verdict=judge_receipts(results, told["notices"], told["alerts"]),
                taken=len(times),
                rate=rate_of(times),
                syntheses=asked["speech"],
                seconds=measured.seconds,
                control_idle=idle,
                cpu_us=us_each(measured, len(results)),
            )

    async def _announce(self, site: JobSite) -> AnnouncementState:
        """Announce a text; return when every device has its receipt.

        Raises:
            Unavailable: It takes too long.
        """
        asked = AnnouncementRequest(text=TEXT, query=QUERY, rate=self.rate, window=WINDOW, halt_share=1.0)
        made = await site.client.send(announcements.create(asked))
        clock = asyncio.get_running_loop().time
        until = clock() + _END_SECONDS + self.devices / self.rate * _SLOWER
        while (found := await site.client.send(announcements.read(made.job.id))).job.state != "done":
            if clock() > until:
                raise Unavailable(f"the announcement was not through: {found}")
            await asyncio.sleep(_POLL_SECONDS)
        return found


def show_announcements(console: Console, found: AnnouncementFigures) -> None:
    """Print what was measured."""
    verdict = found.verdict
    console.print(
        f"{found.devices} devices, {found.online} connected: {found.idle} idle with firmware 2.5, {found.busy} busy, "
        f"{found.old} with older firmware"
    )
    console.print(
        f"{found.taken} of {found.idle} took the clip ({found.taken / max(found.idle, 1):.2%}; mark {MARK:.1%}), "
        f"{found.rate:.0f} in a second (mark {RATE_MARK:.0f}), through after {found.seconds:.1f} s; "
        f"{found.syntheses} synthesis"
    )
    receipts = ", ".join(f"{count} {text}" for text, count in sorted(verdict.receipts.items()))
    console.print(
        f"receipts: {receipts}; devices: {verdict.played} played, {verdict.shown} showed the text, "
        f"{verdict.twice} were told twice, {verdict.differing} receipts differ"
    )
    parts = ", ".join(f"{part} {us:.0f}" for part, us in found.cpu_us.items())
    console.print(f"CPU of a delivery in us: {parts}; control used {found.control_idle:.0%} of a core at rest")
    for words in verdict.wrong:
        console.print(f"  {words}", highlight=False, markup=False)
