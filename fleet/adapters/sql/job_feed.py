"""Moves jobs on, for the one process that has the lease of control.

The fence of the lease is in a row that every transaction looks at first and keeps locked: so a process whose lease has
passed on changes nothing more.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Connection, CursorResult, Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.engines import STATEMENT_SECONDS
from fleet.adapters.sql.event_rows import EventRows, add_events
from fleet.adapters.sql.job_rows import ACTIVE, JobRow, job_of, supersede
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION, JOB_FEEDER
from fleet.adapters.sql.job_targets import QUEUED, SKIPPED, JobTargets, hash_of
from fleet.core.job_order import BUCKET
from fleet.ground.errors import Fenced

EVERYONE: Final = 2**62
"""The reach of a job's last stage."""
_UNANNOUNCED: Final = ("scheduled", "preparing")


class JobFeed:
    """Reads and changes the jobs of all tenants under one lease.

    All methods raise `Unavailable` without the database; those that change something raise `Fenced` when there is a
    newer lease.

    Args:
        database: Where jobs are kept.
        fence: Of the lease; higher than that of every earlier one.
    """

    def __init__(self, database: Database, fence: int) -> None:
        self.database, self.fence = database, fence

    async def begin(self) -> str:
        """Refuse all earlier leases from now on; return the noted life of Redis."""
        newer = update(JOB_FEEDER).where(JOB_FEEDER.c.fence <= self.fence).values(fence=self.fence)
        async with self.database.writing() as connection:
            found = (await connection.execute(newer.returning(JOB_FEEDER.c.life))).scalar_one_or_none()
        if found is None:
            raise Fenced("another process works on jobs")
        await EventRows(self.database, self.fence).begin()  # The collector does the same; events need its fence.
        return str(found)

    async def note_life(self, life: str) -> None:
        """Note the life of Redis in which calls are handed over from now on."""
        async with self.writing() as connection:
            await connection.execute(update(JOB_FEEDER).values(life=life))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction of this lease."""
        held = update(JOB_FEEDER).where(JOB_FEEDER.c.fence == self.fence).values(fence=self.fence)
        async with self.database.writing() as connection:
            if cast("CursorResult[Any]", await connection.execute(held)).rowcount == 0:
                raise Fenced("another process works on jobs")
            yield connection

    async def note_events(
        self, connection: AsyncConnection, events: Sequence[tuple[int, int, str, int, Mapping[str, Any]]]
    ) -> None:
        """Store events in a transaction of this lease; see `add_events`."""
        if events:
            await add_events(connection, self.fence, events)

    async def active(self) -> list[JobRow]:
        """Return the jobs that are not over."""
        found = select(JOB).where(JOB.c.state.in_(ACTIVE)).order_by(JOB.c.id)
        rows: list[Row[Any]] = await self.database.look(lambda connection: list(connection.execute(found)))
        return [job_of(row) for row in rows]

    async def read(self, job: int) -> JobRow:
        """Return a job as it is now; jobs are not deleted."""
        found = select(JOB).where(JOB.c.id == job)
        return await self.database.look(lambda connection: job_of(connection.execute(found).one()))

    async def add_devices(self, job: JobRow, targets: JobTargets) -> bool:
        """Write down the next slice of a job's devices; return whether it was the last one."""
        last = await targets.end_of_slice(job.walked)
        async with self.writing() as connection:
            statement = targets.insertion(job.id, job.walked, last)
            states = list((await connection.execute(statement)).scalars())
            values: dict[str, Any] = {"walked": -1 if last is None else last}
            for name, state in (("n_queued", QUEUED), ("n_skipped", SKIPPED)):
                values[name] = JOB.c[name] + states.count(state)
            await connection.execute(update(JOB).where(JOB.c.id == job.id).values(values))
        return last is None

    async def place_after(self, job: int, count: int) -> int:
        """Return the place of the last of the next devices in a job's order, at least one; `EVERYONE` behind the end.

        Args:
            job: Its id.
            count: How many devices nobody has looked at yet are to be reached.
        """
        c = JOB_EXECUTION.c
        queued = select(c.place).where(c.job == job, c.state == QUEUED)
        exact = place_of(job)

        def read(connection: Connection) -> int:
            nth = queued.order_by(c.place, c.mac).offset(max(count, 1) - 1).limit(1)
            bucket = connection.execute(nth).scalar_one_or_none()
            if bucket is None:
                return EVERYONE
            before = queued.where(c.place < bucket).subquery()
            left = max(count, 1) - connection.execute(select(func.count()).select_from(before)).scalar_one()
            within = queued.with_only_columns(exact).where(c.place == bucket).order_by(exact)
            return int(connection.execute(within.offset(left - 1).limit(1)).scalar_one())

        return await self.database.look(read, seconds=STATEMENT_SECONDS)

    async def change(self, job: JobRow, now: int, **values: Any) -> None:
        """Change a job whose state is still the one that was read; a new state or stage makes an event."""
        async with self.writing() as connection:
            more = {"version": JOB.c.version + 1} if values.keys() & {"state", "stage"} else {}
            changed = update(JOB).where(JOB.c.id == job.id, JOB.c.state == job.state).values(values | more)
            row = (await connection.execute(changed.returning(JOB))).one_or_none()
            if row is not None:
                await self._announce(connection, job_of(row), now)

    async def begin_scheduled(self, job: JobRow) -> None:
        """Begin a job whose time has come: its devices are written down, and older jobs with its key stop."""
        begun = update(JOB).where(JOB.c.id == job.id, JOB.c.state == "scheduled")
        async with self.writing() as connection:
            values = {"state": "preparing", "version": JOB.c.version + 1}
            row = (await connection.execute(begun.values(values).returning(JOB))).one_or_none()
            if row is not None:
                await supersede(connection, job_of(row))

    async def announce(self, job: JobRow, now: int) -> None:
        """Tell of a state that a person set."""
        if job.announced != announcement(job) and job.state not in _UNANNOUNCED:
            async with self.writing() as connection:
                await self._announce(connection, job, now)

    async def _announce(self, connection: AsyncConnection, job: JobRow, now: int) -> None:
        name, (before, _, stage) = announcement(job), job.announced.partition(":")
        if job.announced == name or job.state in _UNANNOUNCED:
            return
        kind = f"job.{name.partition(':')[0]}"
        if kind == "job.running" and before and stage != str(job.stage):
            kind = "job.stage"
        counts = {state: count for state, count in job.counts.items() if count}
        data = {"job": job.id, "name": job.name, "stage": job.stage, "reason": job.reason, "counts": counts}
        await add_events(connection, self.fence, [(job.tenant, now, kind, 0, data)])
        await connection.execute(update(JOB).where(JOB.c.id == job.id).values(announced=name, since=now))


def place_of(job: int) -> ColumnElement[int]:
    """Return the exact place of a queued execution: `place` has only its bucket."""
    return JOB_EXECUTION.c.place + hash_of(JOB_EXECUTION.c.mac, job) % BUCKET


def announcement(job: JobRow) -> str:
    """Return what the next event of a job is about."""
    waits = job.state == "running" and job.reason == "approval"
    return f"{'approval' if waits else job.state}:{job.stage}"
