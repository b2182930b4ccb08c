"""Moves the devices of a site to a new key as a job of control, and follows it."""

import asyncio
from typing import Any, Final

from fleet.client import devices, jobs
from fleet.client.client import AsyncFleetClient
from fleet.operations.jobs_table import JobScreen
from fleet.wire.control.jobs import Job, JobRequest

LOOK_SECONDS: Final = 1.0
_STANDS: Final = ("done", "stopped", "stopping", "halted", "paused")


class RotationJob:
    """A job of the kind `rotate_credentials`; a newer one stops the older one.

    Args:
        control: Makes it.
        policy: How it goes through the devices.
        limit: Longest time to follow it, in seconds.
        show: Whether to show its progress.
    """

    def __init__(self, control: AsyncFleetClient, policy: dict[str, Any], limit: float, *, show: bool) -> None:
        self._control, self._policy = control, policy
        self._limit, self._show = limit, show

    async def run(self, key: str) -> None:
        """Move the devices; return when none that is connected is left, when the job stands still, or in the end.

        The job goes on after that: devices that connect later are restarted if they still have an older password.
        """
        asked: dict[str, Any] = {"name": f"move to {key}", "kind": "rotate_credentials", "key": key, "query": ""}
        asked |= {"policy": self._policy, "supersedes": "rotate_credentials"}
        job = await self._control.send(jobs.create(JobRequest.model_validate(asked)))
        clock = asyncio.get_running_loop().time
        until = clock() + self._limit
        with JobScreen() as screen:
            while clock() < until:
                found = await self._control.send(jobs.read(job.id))
                if self._show and found != job:
                    screen.show(found)
                job = found
                if job.state in _STANDS or (_only_waits(job) and not await self._any_left(key)):
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def _any_left(self, key: str) -> bool:
        found = await self._control.send(devices.search(f"online AND NOT key={key}", limit=1, count=True))
        return bool(found.total)


def _only_waits(job: Job) -> bool:
    counts = job.counts
    return job.state == "running" and not counts.queued + counts.sent + counts.verifying
