"""The kind `announce`: the owner of a device's shard delivers the text (docs/adr/0052-announcements.md)."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.job_evidence import JobEvidence, Watched
from fleet.adapters.sql.job_executions import CallEnd
from fleet.adapters.sql.job_rows import JobRow, JobRows
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.ground.errors import Unavailable
from fleet.roles.control.job_tasks.calls import BUSY_MS, CallTask, call_name
from fleet.wire.announcements import TOOL, DeviceAnnouncement
from fleet.wire.operator_calls import OperatorCall

log = logging.getLogger(__name__)


class AnnounceTask(CallTask):
    """Tells each device a text, as an operator's call that is no call of a tool."""

    def __init__(self, job: JobRow, calls: JobCalls) -> None:
        super().__init__(job, calls)
        self._tenant = job.tenant

    async def recall(self, watched: Sequence[Watched]) -> Sequence[CallEnd]:
        """Let devices that have the text, but were not told it yet, not be told it; their owners say so at once."""
        await self._calls.recall([(mac_text(one.mac), call_name(one.job, one.attempt)) for one in watched])
        return ()

    def judge(self, end: CallEnd, now: int) -> CallEnd:
        """Return the end; a device that had no time until now is told later, as one that is away."""
        return replace(end, state="waiting", due=now + 2 * BUSY_MS) if end.state == "timed_out" else end

    def call(self, mac: str, name: str) -> OperatorCall:
        """Return the announcement to one device."""
        text = self.terms.arguments
        ways = tuple(text["ways"])
        announcement = DeviceAnnouncement(text["text"], text["language"], ways, tenant=self._tenant)
        return OperatorCall(device=mac, call=name, tool=TOOL, arguments={}, announcement=announcement)


async def take_back(database: Database, store: Store, tenant: int, job: int) -> None:
    """Take back what a job that was just stopped has handed over, if it is an announcement.

    The leader does so, too, but only with its next step: a device that wakes up until then would still be told.
    """
    try:
        row = await JobRows(database, tenant).read(job)
        if row is not None and row.kind == "announce" and row.under_way:
            await AnnounceTask(row, JobCalls(store, 0)).recall(await JobEvidence(database).under_way(job))
    except Unavailable as error:
        log.warning("announcement not taken back at once", extra={"job": job, "reason": str(error)})
