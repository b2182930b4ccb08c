"""Writes down the devices of new jobs, and lets new members of a query join continuous ones."""

import asyncio
import logging

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_feed import EVERYONE, JobFeed
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.job_targets import JobTargets
from fleet.core.job_order import end_of_tier
from fleet.core.query.conditions import QueryError
from fleet.core.rollout import Policy
from fleet.core.tenant_turns import TenantTurns
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_policies import policy_of, target_of_job

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.25
BETWEEN_SLICES = 0.01
"""Others write meanwhile."""


class JobDevices:
    """Works slice by slice: of new jobs as fast as it may, of continuous ones a slice at a time.

    Args:
        database: The registry, and the jobs.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._turns = database, TenantTurns()

    async def run(self, fence: str) -> None:
        """Work until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: The database does not answer; call it again.
        """
        feed = JobFeed(self._database, int(fence))
        await feed.begin()
        while True:
            busy = await self.step(feed)
            await asyncio.sleep(BETWEEN_SLICES if busy else PAUSE_SECONDS)

    async def step(self, feed: JobFeed) -> bool:
        """Begin jobs whose time has come, add one slice to each that wants one; return whether a new job wants more.

        Tenants take turns: one with many new jobs does not let others wait for all of these.
        """
        busy = False
        for job in self._turns.round(await feed.active(), asyncio.get_running_loop().time):
            if job.state == "scheduled" and milliseconds() >= (job.starts or 0):
                await feed.begin_scheduled(job)
                busy = True
            elif job.state == "preparing" or (job.continuous and job.state == "running"):
                busy |= await self._add(feed, job)
        return busy or self._turns.cut

    async def _add(self, feed: JobFeed, job: JobRow) -> bool:
        now = milliseconds()
        try:
            targets = JobTargets(self._database, target_of_job(job))
        except QueryError as error:  # This version reads queries in another way than the one that made the job.
            await feed.change(job, now, state="halted", reason=f"query: {error}"[:200])
            return False
        whole = await feed.add_devices(job, targets)
        if job.state != "preparing":
            return False
        if whole:
            fresh = next((one for one in await feed.active() if one.id == job.id), job)
            await feed.change(job, now, state="running", reach=await reach_of(feed, fresh, policy_of(fresh), 0))
        return not whole


async def reach_of(feed: JobFeed, job: JobRow, policy: Policy, stage: int) -> int:
    """Return the place of the last device of a stage, when every device of the earlier stages was looked at."""
    wanted = policy.stages[stage]
    if stage == len(policy.stages) - 1:
        return EVERYONE
    if wanted.query:
        tier = sum(bool(one.query) for one in policy.stages[:stage])
        return max(job.reach, end_of_tier(tier))
    queued, devices = job.counts["queued"], job.total - job.counts["skipped"]
    target = wanted.count or -int(-wanted.share * devices // 1)
    missing = target - (devices - queued)
    if missing <= 0 and job.reach >= 0:
        return job.reach
    return await feed.place_after(job.id, missing)
