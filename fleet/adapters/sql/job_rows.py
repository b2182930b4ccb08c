"""Jobs of one tenant, as people make and steer them; the feeder moves them on (`job_feed`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import CursorResult, Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.job_schema import JOB, JOB_EXECUTION
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.transaction import Sql
from fleet.core.rollout import Recent
from fleet.wire.job_states import EXECUTION_STATES, UNDER_WAY, ExecutionState, JobKind, JobState

ACTIVE: Final[tuple[JobState, ...]] = ("scheduled", "preparing", "running", "paused", "halted", "stopping")
"""States in which a job is not over."""
OVER: Final[tuple[JobState, ...]] = ("done", "stopped")
DELETED: Final = "deleted"
"""The state of a job that nobody sees any more; its rows go slice by slice."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. Times are milliseconds since 1970. `policy` is as the API shows it; `body` depends on the kind."""

    id: int
    tenant: int
    name: str
    kind: JobKind
    body: Mapping[str, Any]
    query: str
    continuous: bool
    policy: Mapping[str, Any]
    state: JobState
    reason: str
    announced: str
    stage: int
    reach: int
    settled: int | None
    approved: int
    walked: int
    stage_ok: int
    stage_failed: int
    recent: Recent
    retry_states: int
    retry_until: int
    witnessed: int | None
    created: int
    created_by: str
    ended: int | None
    expires: int
    starts: int | None
    supersedes: str
    version: int
    counts: Mapping[ExecutionState, int]

    @property
    def under_way(self) -> int:
        """How many devices may do it now."""
        return sum(self.counts[state] for state in UNDER_WAY)

    @property
    def total(self) -> int:
        """How many devices it has so far."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a person asks for; see `JobRow`."""

    name: str
    kind: str
    body: Mapping[str, Any]
    query: str
    continuous: bool
    policy: Mapping[str, Any]
    created: int
    created_by: str
    expires: int
    starts: int | None = None
    supersedes: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """What happened on one device. `place`: see the schema; `text` is the device's answer, or a reason."""

    mac: str
    state: ExecutionState
    place: int
    attempt: int
    retries: int
    text: str


class JobRows:
    """Makes, reads and steers the jobs of one tenant. All methods raise `Unavailable` without the database.

    Args:
        sql: The database, or a transaction.
        tenant: Whose jobs.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._tenant = sql, tenant

    async def add(self, job: NewJob) -> JobRow:
        """Make a job; its devices are written down later."""
        values = {
            **{name: getattr(job, name) for name in NewJob.__slots__},
            "tenant": self._tenant,
            "body": dict(job.body),
            "policy": dict(job.policy),
            **{
                "state": "preparing" if job.starts is None else "scheduled",
                "reason": "",
                "announced": "",
                "stage": 0,
                "reach": -1,
                "approved": 0,
                "walked": -1,
            },
            **dict.fromkeys(("stage_ok", "stage_failed", "recent_ended", "recent_failed"), 0),
            **dict.fromkeys(("retry_states", "retry_until"), 0),
            **new_number(self._sql, JOB),
        }
        async with self._sql.writing() as connection:
            row = job_of((await connection.execute(insert(JOB).values(values).returning(JOB))).one())
            if row.state == "preparing":
                await supersede(connection, row)
            return row

    async def active(self) -> int:
        """Return how many jobs are not over."""
        counted = select(func.count()).select_from(JOB).where(JOB.c.tenant == self._tenant, JOB.c.state.in_(ACTIVE))
        async with self._sql.reading() as connection:
            return int((await connection.execute(counted)).scalar_one())

    async def made(self, kind: JobKind, since: int) -> int:
        """Return how many jobs of a kind were made since a time."""
        mine = JOB.c.tenant == self._tenant, JOB.c.kind == kind, JOB.c.created >= since
        async with self._sql.reading() as connection:
            return int((await connection.execute(select(func.count()).select_from(JOB).where(*mine))).scalar_one())

    async def answers(self, job: int) -> Mapping[str, int]:
        """Return how many successful devices of a job gave each answer, the 20 most frequent ones."""
        text, count = JOB_EXECUTION.c.text, func.count()
        of_job = JOB.c.id == JOB_EXECUTION.c.job, JOB.c.tenant == self._tenant, JOB_EXECUTION.c.job == job
        ok = JOB_EXECUTION.c.state == EXECUTION_STATES.index("ok")
        counted = select(text, count).where(*of_job, ok).group_by(text).order_by(count.desc()).limit(20)
        async with self._sql.reading() as connection:
            return {row[0]: int(row[1]) for row in await connection.execute(counted)}

    async def named(self, name: str, query: str, limit: int) -> list[JobRow]:
        """Return the newest jobs with this name and query."""
        found = select(JOB).where(JOB.c.tenant == self._tenant, JOB.c.name == name, JOB.c.query == query)
        found = found.where(JOB.c.state != DELETED).order_by(JOB.c.id.desc()).limit(limit)
        async with self._sql.reading() as connection:
            return [job_of(row) for row in (await connection.execute(found)).all()]

    async def unfinished(self) -> list[JobRow]:
        """Return the jobs that are not over."""
        found = select(JOB).where(JOB.c.tenant == self._tenant, JOB.c.state.in_(ACTIVE)).order_by(JOB.c.id)
        async with self._sql.reading() as connection:
            return [job_of(row) for row in await connection.execute(found)]

    async def page(self, before: int | None, limit: int) -> list[JobRow]:
        """Return jobs with ids below `before`, the newest first."""
        found = select(JOB).where(JOB.c.tenant == self._tenant, JOB.c.state != DELETED)
        if before is not None:
            found = found.where(JOB.c.id < before)
        async with self._sql.reading() as connection:
            rows = await connection.execute(found.order_by(JOB.c.id.desc()).limit(limit))
            return [job_of(row) for row in rows]

    async def read(self, job: int, *, lock: bool = False) -> JobRow | None:
        """Return a job; None if this tenant has no such job. With `lock`, nobody else changes it meanwhile."""
        found = select(JOB).where(JOB.c.tenant == self._tenant, JOB.c.id == job, JOB.c.state != DELETED)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found.with_for_update() if lock else found)).one_or_none()
            return None if row is None else job_of(row)

    async def change(self, job: int, **values: Any) -> JobRow:
        """Change some columns of a job of this tenant."""
        changed = update(JOB).where(JOB.c.tenant == self._tenant, JOB.c.id == job).returning(JOB)
        changed = changed.values(**values, version=JOB.c.version + 1)
        async with self._sql.writing() as connection:
            return job_of((await connection.execute(changed)).one())

    async def executions(
        self, job: int, state: ExecutionState | None, after: Sequence[int], limit: int
    ) -> list[ExecutionRow]:
        """Return executions in the order of MACs, or of one state in the order in which they got it.

        Args:
            job: Of this tenant.
            state: None for all.
            after: The `sort_key` of the last one before; empty for the first page.
            limit: At most so many.
        """
        c = JOB_EXECUTION.c
        found = select(c.mac, c.state, c.place, c.attempt, c.retries, c.text).where(c.job == job)
        if state is None:
            found = found.where(c.mac > after[0]) if after else found
            found = found.order_by(c.mac)
        else:
            found = found.where(c.state == EXECUTION_STATES.index(state))
            if after:
                place, mac = after
                found = found.where(c.place >= place, or_(c.place > place, and_(c.place == place, c.mac > mac)))
            found = found.order_by(c.place, c.mac)
        async with self._sql.reading() as connection:
            return [_execution(row) for row in (await connection.execute(found.limit(limit))).all()]


async def supersede(connection: AsyncConnection, job: JobRow) -> None:
    """Stop the other jobs with the key of a job that begins, in the transaction in which it does."""
    if job.supersedes:
        same = JOB.c.tenant == job.tenant, JOB.c.supersedes == job.supersedes, JOB.c.id != job.id
        values = {"state": "stopping", "reason": f"superseded by job {job.id}", "version": JOB.c.version + 1}
        older = JOB.c.id < job.id, JOB.c.state.in_([one for one in ACTIVE if one != "stopping"])
        await connection.execute(update(JOB).where(*same, *older).values(values))


def sort_key(row: ExecutionRow, state: ExecutionState | None) -> list[int]:
    """Return the place of an execution in the order of `JobRows.executions`."""
    number = mac_number(row.mac)
    return [number] if state is None else [row.place, number]


async def forget_executions(connection: AsyncConnection, mac: int) -> None:
    """Delete what jobs did with a device, of all tenants, in a transaction."""
    c = JOB_EXECUTION.c
    of = c.mac == mac, c.job.in_(select(JOB.c.id))
    for job, state in (await connection.execute(select(c.job, c.state).where(*of))).all():
        column = f"n_{EXECUTION_STATES[state]}"
        gone = await connection.execute(delete(JOB_EXECUTION).where(c.job == job, c.mac == mac, c.state == state))
        less = {column: JOB.c[column] - cast("CursorResult[Any]", gone).rowcount}
        await connection.execute(update(JOB).where(JOB.c.id == job).values(less))


def job_of(row: Row[Any]) -> JobRow:
    """Return the job of a row of `job`."""
    names = [name for name in JobRow.__slots__ if name not in ("recent", "counts")]
    counts = {state: getattr(row, f"n_{state}") for state in EXECUTION_STATES}
    values = {name: getattr(row, name) for name in names}
    return JobRow(**values, recent=Recent(row.recent_ended, row.recent_failed), counts=counts)


def _execution(row: Any) -> ExecutionRow:
    return ExecutionRow(mac_text(row.mac), EXECUTION_STATES[row.state], row.place, row.attempt, row.retries, row.text)
