"""Deletes jobs that are over: those that a person deletes, old ones, and those beyond a number.

A job may have a million rows: they go slice by slice, and meanwhile nobody sees the job any more.
"""

from itertools import product
from typing import Final

from sqlalchemy import delete, select, update

from fleet.adapters.sql.event_rows import add_events
from fleet.adapters.sql.job_feed import JobFeed
from fleet.adapters.sql.job_rows import DELETED, OVER
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION
from fleet.adapters.sql.schema import TENANT
from fleet.wire.job_states import COMMAND

AT_ONCE: Final = 5_000
"""Rows of one transaction."""
_X = JOB_EXECUTION.c


class JobRemovals:
    """Deletes under one lease; see `JobFeed` for what it raises."""

    def __init__(self, feed: JobFeed) -> None:
        self._feed = feed

    async def retire(self, before: int, most: int) -> None:
        """Let nobody see jobs any more that ended before a time, or that are older than the newest ones.

        Args:
            before: In ms since 1970.
            most: Jobs of a tenant that are over and are kept, and as many commands.
        """
        over = JOB.c.state.in_(OVER)
        async with self._feed.writing() as connection:
            await connection.execute(update(JOB).where(over, JOB.c.ended < before).values(state=DELETED))
            tenants = (await connection.execute(select(TENANT.c.id))).scalars().all()
            # Whoever may command a device, and make no job, shall displace no job.
            for tenant, part in product(tenants, (JOB.c.name == COMMAND, JOB.c.name != COMMAND)):
                mine = JOB.c.tenant == tenant, part, over
                newest = select(JOB.c.id).where(*mine).order_by(JOB.c.id.desc())
                last = (await connection.execute(newest.offset(most).limit(1))).scalar_one_or_none()
                if last is not None:
                    await connection.execute(update(JOB).where(*mine, JOB.c.id <= last).values(state=DELETED))

    async def purge(self, now: int) -> bool:
        """Delete some rows of a job that nobody sees any more; return whether there may be more."""
        one = select(JOB.c.id, JOB.c.tenant, JOB.c.name).where(JOB.c.state == DELETED).order_by(JOB.c.id).limit(1)
        async with self._feed.writing() as connection:
            job = (await connection.execute(one)).one_or_none()
            if job is None:
                return False
            some = select(_X.mac).where(_X.job == job.id).order_by(_X.mac).limit(AT_ONCE)
            last = list((await connection.execute(some)).scalars())[-1:]
            if last:
                await connection.execute(delete(JOB_EXECUTION).where(_X.job == job.id, _X.mac <= last[0]))
            else:
                await connection.execute(delete(JOB).where(JOB.c.id == job.id))
                data = {"job": job.id, "name": job.name}
                await add_events(connection, self._feed.fence, [(job.tenant, now, "job.deleted", 0, data)])
            return True
