"""Kinds whose outcome is a change that control itself makes: it is written, so it is done."""

from collections.abc import Sequence
from typing import Protocol

from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.roles.control.job_tasks.task import JobTask


class WrittenTask(JobTask, Protocol):
    """A task that writes. To write the same twice is to write it once: after a kill it is written again."""

    async def write(self, macs: Sequence[int]) -> None:
        """Make the change for some devices, at most 500, in one transaction."""
        ...

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Write, and say so."""
        await self.write([one.mac for one in sent])
        return [CallEnd(one.job, one.mac, one.attempt, "ok") for one in sent]

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        """Write what a killed process may not have written."""
        return await self.start(sent)
