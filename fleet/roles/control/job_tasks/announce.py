"""The kind `announce`: the owner of a device's shard delivers the text (docs/adr/0052-announcements.md)."""

from collections.abc import Sequence

from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.roles.control.job_tasks.calls import CallTask, call_name
from fleet.wire.announcements import TOOL, DeviceAnnouncement
from fleet.wire.operator_calls import OperatorCall


class AnnounceTask(CallTask):
    """Tells each device a text, as an operator's call that is no call of a tool."""

    def __init__(self, job: JobRow, calls: JobCalls) -> None:
        super().__init__(job, calls)
        self._tenant = job.tenant

    async def recall(self, watched: Sequence[Watched]) -> Sequence[CallEnd]:
        """Let devices that have the text, but were not told it yet, not be told it; their owners say so at once."""
        await self._calls.recall([(mac_text(one.mac), call_name(one.job, one.attempt)) for one in watched])
        return ()

    def call(self, mac: str, name: str) -> OperatorCall:
        """Return the announcement to one device."""
        text = self.terms.arguments
        ways = tuple(text["ways"])
        announcement = DeviceAnnouncement(text["text"], text["language"], ways, tenant=self._tenant)
        return OperatorCall(device=mac, call=name, tool=TOOL, arguments={}, announcement=announcement)
