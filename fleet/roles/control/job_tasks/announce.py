"""The kind `announce`: the owner of a device's shard delivers the text (docs/adr/0052-announcements.md)."""

from fleet.roles.control.job_tasks.calls import CallTask
from fleet.wire.announcements import TOOL, DeviceAnnouncement
from fleet.wire.operator_calls import OperatorCall


class AnnounceTask(CallTask):
    """Tells each device a text, as an operator's call that is no call of a tool."""

    def call(self, mac: str, name: str) -> OperatorCall:
        """Return the announcement to one device."""
        text = self.terms.arguments
        announcement = DeviceAnnouncement(text["text"], text["language"], tuple(text["ways"]))
        return OperatorCall(device=mac, call=name, tool=TOOL, arguments={}, announcement=announcement)
