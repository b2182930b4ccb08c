"""Feeds running jobs, on the one process of control that leads."""

import asyncio
from collections.abc import Sequence
from typing import Final

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_feed import JobFeed
from fleet.ground.metrics import jobs as counted
from fleet.roles.control.leader.job_work import JobWork

STEP_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 1.0
"""The same while there is no job."""
SWEEP_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 5.0
_MOST_WOKEN = 50_000


class JobFeeder:
    """Feeds jobs under one lease after the other.

    Args:
        store: Redis.
        database: Where jobs are kept.
        timezone: Of devices without one of their own.
    """

    def __init__(self, store: Store, database: Database, timezone: str) -> None:
        self._store, self._database, self._timezone = store, database, timezone
        self._connected: set[int] = set()
        self._started: set[int] = set()
        self._missed = False
        self._active = 0

    def notice(self, events: Sequence[StoredEvent]) -> None:
        """Take events that were just stored: of devices that connected, or began a session."""
        if not self._active:
            return
        came = {one.mac for one in events if one.kind == "device.online"}
        if len(self._connected) + len(came) > _MOST_WOKEN:
            self._missed = True
        else:
            self._connected |= came
        # One that is missed waits for the next time at which it is looked at anyway.
        if len(self._started) < _MOST_WOKEN:
            self._started |= {one.mac for one in events if one.kind == "session.started"}

    async def run(self, fence: str) -> None:
        """Feed until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: Redis or the database does not answer; call it again.
        """
        with counted.active.following(lambda: self._active):
            work = await self.begin(int(fence))
            clock = asyncio.get_running_loop().time
            looked, swept = clock(), float("-inf")
            while True:
                begun = clock()
                if begun - looked > LOOK_SECONDS:
                    await work.look()
                    looked = begun
                if self._missed or begun - swept > SWEEP_SECONDS:
                    self._missed = False
                    await work.sweep()
                    swept = begun
                busy = await self.step(work)
                pause = STEP_SECONDS if self._active else IDLE_SECONDS
                await asyncio.sleep(0 if busy else max(0.0, begun + pause - clock()))

    async def begin(self, fence: int) -> JobWork:
        """Take over from an earlier lease."""
        work = JobWork(self._store, JobFeed(self._database, fence), JobCalls(self._store, fence), self._timezone)
        await work.begin()
        return work

    async def step(self, work: JobWork) -> bool:
        """Work once on every job; return whether there is more to do at once."""
        connected, self._connected = self._connected, set()
        started, self._started = self._started, set()
        jobs = await work.feed.active()
        self._active = len(jobs)
        return await work.step(jobs, connected, started) if jobs else False
