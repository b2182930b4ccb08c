"""The task of each kind of job."""

from collections.abc import Callable, Iterable, Mapping

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.offers import Offers
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_rows import JobRow
from fleet.roles.control.job_tasks.agent import AgentTask
from fleet.roles.control.job_tasks.announce import AnnounceTask
from fleet.roles.control.job_tasks.calls import CallOutcomes, CallTask
from fleet.roles.control.job_tasks.firmware import AssetsTask, FirmwareTask
from fleet.roles.control.job_tasks.rotate_credentials import RotationTask
from fleet.roles.control.job_tasks.shadow import ShadowTask
from fleet.roles.control.job_tasks.task import JobTask, OutcomeSource
from fleet.wire.job_states import JobKind


class JobTasks:
    """Makes the tasks of jobs under one lease.

    Args:
        calls: Hands calls over.
        database: The registry, and what people decide.
        store: Redis.
    """

    def __init__(self, calls: JobCalls, database: Database, store: Store) -> None:
        self.sources: tuple[OutcomeSource, ...] = (CallOutcomes(calls),)
        """Where outcomes arrive."""

        def call(job: JobRow) -> JobTask:
            return CallTask(job, calls)

        offers = Offers(store)
        self.makers: dict[JobKind, Callable[[JobRow], JobTask]] = {
            **dict.fromkeys(("tool", "reboot", "collect"), call),
            "announce": lambda job: AnnounceTask(job, calls),
            "firmware": lambda job: FirmwareTask(job, job.body["firmware"], calls, offers),
            "assets": lambda job: AssetsTask(job, job.body["assets"], calls, offers),
            "shadow": lambda job: ShadowTask(job, database),
            "agent": lambda job: AgentTask(job, database, store),
            "rotate_credentials": lambda job: RotationTask(job, calls),
        }
        """By kind."""

    def of(self, job: JobRow) -> JobTask:
        """Return the task of a job."""
        return self.makers[job.kind](job)

    def by_job(self, jobs: Iterable[JobRow]) -> Mapping[int, JobTask]:
        """Return the tasks of jobs by their ids."""
        return {one.id: self.of(one) for one in jobs}
