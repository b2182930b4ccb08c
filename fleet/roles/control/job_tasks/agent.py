"""The kind `agent`: gives an agent to devices."""

from collections.abc import Sequence

from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.assignment_writes import give_agent
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.roles.control.agents.compiler import AgentCompiler
from fleet.roles.control.job_policies import terms_of_job
from fleet.roles.control.job_tasks.task import JobTask


class AgentTask(JobTask):
    """Writes assignments: to write the same twice is to write it once.

    Args:
        job: Of the kind `agent`.
        database: Has the assignments.
        store: Redis, which workers read them from.
    """

    def __init__(self, job: JobRow, database: Database, store: Store) -> None:
        self.terms = terms_of_job(job)
        self._tenant, self._agent = job.tenant, int(job.body["agent"])
        self._database, self._compiler = database, AgentCompiler(database, store)

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Give the agent; it counts from the next turn of each device on."""
        macs = [one.mac for one in sent]
        given = await give_agent(self._database, self._tenant, macs, self._agent)
        if given:
            await self._compiler.settle(self._tenant, [mac_text(mac) for mac in given])
        lost = "the agent or the device is gone"
        return [
            CallEnd(one.job, one.mac, one.attempt, *(("ok", "assigned") if one.mac in given else ("error", lost)))
            for one in sent
        ]

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        """Write what a killed process may not have written."""
        return await self.start(sent)
