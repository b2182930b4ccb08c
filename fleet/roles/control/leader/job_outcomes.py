"""Stores what became of the executions that jobs handed over: as outcomes of calls, as evidence, or by its lack."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from fleet.adapters.sql.job_evidence import JobEvidence, Watched
from fleet.adapters.sql.job_executions import AT_ONCE, CallEnd, EndTerms, JobExecutions
from fleet.adapters.sql.job_rows import JobRow
from fleet.core.shared_places import SharedPlaces
from fleet.ground.metrics import jobs as counted
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_policies import policy_of, terms_of_job
from fleet.roles.control.job_tasks.directory import JobTasks
from fleet.wire.job_states import UNDER_WAY

LATE_MS = 60_000
"""How long after its last moment a call is looked up whose outcome did not come."""
_READ_AHEAD = 5_000
"""Events without evidence after which the place up to which they were read is written down."""


class JobOutcomes:
    """Collects outcomes and evidence under one lease; what has ended gives its place back."""

    def __init__(self, tasks: JobTasks, executions: JobExecutions, evidence: JobEvidence, places: SharedPlaces) -> None:
        self._tasks, self._executions, self._evidence, self._places = tasks, executions, evidence, places
        self._read: dict[int, int] = {}

    async def collect(self, jobs: Sequence[JobRow], now: int) -> int:
        """Store the oldest outcomes, then remove them from where they arrived; return how many there were."""
        count, tasks = 0, self._tasks.by_job(jobs)
        for source in self._tasks.sources:
            found = await source.read(now)
            await self.store([tasks[one.job].judge(one, now) for one in found if one.job in tasks], jobs, now)
            await source.forget()
            count += len(found)
        return count

    async def look_up(self, job: JobRow, now: int) -> None:
        """End the executions of a job that have had no outcome for so long that none is to be expected."""
        late = now - policy_of(job).within_ms - terms_of_job(job).answer_ms - LATE_MS
        await self._review(job, late, overdue=True)

    async def give_up_lost(self, job: JobRow) -> None:
        """End those executions of a job as unknown of which Redis, which lost its data, does not know."""
        await self._review(job, None, overdue=False)

    async def _review(self, job: JobRow, before: int | None, *, overdue: bool) -> None:
        sent = await (self._executions.sent(job.id) if before is None else self._executions.sent(job.id, before))
        if sent:
            task = self._tasks.of(job)
            ends, now = await task.review(sent, overdue=overdue), milliseconds()
            await self.store([task.judge(one, now) for one in ends], [job], now)

    async def read_evidence(self, job: JobRow, now: int) -> bool:
        """Store what events show of a job's executions; then give up those whose time is over.

        Returns whether there may be more events.
        """
        task, known = self._tasks.of(job), max(job.witnessed or 0, self._read.get(job.id, 0))
        evidence = await self._evidence.after(job, known, task.terms.evidence)
        ends: dict[int, CallEnd] = {}
        for watched, event in evidence.found:
            before = ends.get(watched.mac)
            if before is None or before.state in UNDER_WAY:
                after = task.witness(_noted(watched, before), event)
                ends |= {} if after is None else {watched.mac: after}
        if ends or evidence.read - (job.witnessed or 0) > _READ_AHEAD:
            await self.store(list(ends.values()), [job], now, witnessed={job.id: evidence.read})
        self._read[job.id] = evidence.read
        if len(evidence.found) == AT_ONCE:
            return True
        late = await self._evidence.overdue(job.id, now) if job.counts["verifying"] else []
        if late:
            await self.store([task.give_up(one) for one in late], [job], now, witnessed={job.id: evidence.read})
        return False

    async def recall(self, job: JobRow, now: int) -> None:
        """Take back what the devices of a job have not begun."""
        ends = await self._tasks.of(job).recall(await self._evidence.under_way(job.id))
        if ends:
            await self.store(ends, [job], now, witnessed={})

    async def store(
        self, ended: Sequence[CallEnd], jobs: Iterable[JobRow], now: int, *, witnessed: Mapping[int, int] | None = None
    ) -> None:
        """Store ends; see `JobExecutions.end`."""
        if not ended and not witnessed:
            return
        jobs = list(jobs)
        tasks, terms = self._tasks.by_job(jobs), terms_of_jobs(jobs)
        of_job: Callable[[CallEnd], int] = attrgetter("job")
        for job, ends in itertools.groupby(sorted(ended, key=of_job), of_job):
            leaving = [one for one in ends if one.state not in UNDER_WAY]
            if job in tasks and leaving:
                await tasks[job].release(leaving)
        for at in range(0, max(1, len(ended)), AT_ONCE):
            stored = await self._executions.end(ended[at : at + AT_ONCE], terms, now, witnessed)
            for state, count in stored.items():
                if state not in UNDER_WAY:
                    counted.executions.add(state, count=count)
        for one in ended:
            self._places.leave((one.job, one.mac))


def terms_of_jobs(jobs: Iterable[JobRow]) -> Mapping[int, EndTerms]:
    """Return what the ends of executions mean for jobs."""
    return {one.id: EndTerms(policy_of(one), terms_of_job(one).attribute) for one in jobs}


def _noted(watched: Watched, before: CallEnd | None) -> Watched:
    if before is None:
        return watched
    return replace(watched, state=before.state, place=before.due, text=before.text)
