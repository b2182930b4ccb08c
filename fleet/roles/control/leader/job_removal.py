"""Deletes jobs that are over, on the one process of control that leads."""

import asyncio
from typing import Final

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_removals import JobRemovals
from fleet.roles.control.access import milliseconds

MOST_JOBS: Final = 1_000
"""Jobs of a tenant that are over and are kept, and as many commands; the oldest ones go first."""
PAUSE_SECONDS: Final = 10.0
_BETWEEN_SLICES: Final = 0.05
"""Others write meanwhile."""
_DAY_MS: Final = 86_400_000


class JobRemoval:
    """Deletes old jobs, and those that persons deleted.

    Args:
        database: Where jobs are kept.
        days: How long jobs are kept that are over.
    """

    def __init__(self, database: Database, days: float) -> None:
        self._database, self._days = database, days

    async def run(self, fence: str) -> None:
        """Work until cancelled.

        Raises:
            Fenced: There is a newer lease.
            Unavailable: The database does not answer; call it again.
        """
        feed = JobFeed(self._database, int(fence))
        await feed.begin()
        while True:
            await self.sweep(feed, milliseconds(), _BETWEEN_SLICES)
            await asyncio.sleep(PAUSE_SECONDS)

    async def sweep(self, feed: JobFeed, now: int, pause: float = 0.0) -> None:
        """Delete all that is to go; `now` is in ms since 1970, `pause` in seconds between two slices."""
        removals = JobRemovals(feed)
        await removals.retire(now - round(self._days * _DAY_MS), MOST_JOBS)
        while await removals.purge(now):  # noqa: ASYNC110 - it does the work
            await asyncio.sleep(pause)
