"""The kind `announce`: the owner of a device's shard delivers the text (docs/adr/0052-announcements.md)."""

from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.job_rows import JobRow
from fleet.roles.control.job_tasks.calls import CallTask
from fleet.wire.announcements import TOOL, DeviceAnnouncement
from fleet.wire.operator_calls import OperatorCall


class AnnounceTask(CallTask):
    """Tells each device a text, as an operator's call that is no call of a tool."""

    def __init__(self, job: JobRow, calls: JobCalls) -> None:
        super().__init__(job, calls)
        self._tenant = job.tenant

    def call(self, mac: str, name: str) -> OperatorCall:
        """Return the announcement to one device."""
        text = self.terms.arguments
        ways = tuple(text["ways"])
        announcement = DeviceAnnouncement(text["text"], text["language"], ways, tenant=self._tenant)
        return OperatorCall(device=mac, call=name, tool=TOOL, arguments={}, announcement=announcement)
