"""Calls about jobs."""

from collections.abc import Sequence
from typing import Literal

from fleet.client.call import Call, Nothing
from fleet.wire.control.jobs import Job, JobExecution, JobPreview, JobRequest, RetryChoice
from fleet.wire.control.shapes import ListPage
from fleet.wire.job_states import ExecutionState

JobPage = ListPage[Job]
ExecutionPage = ListPage[JobExecution]


def listing(limit: int = 100) -> Call[JobPage]:
    """List jobs, the newest first."""
    return Call("GET", "/jobs", JobPage, {"limit": limit})


def create(job: JobRequest) -> Call[Job]:
    """Make a job; it begins at once, or when it says."""
    return Call("POST", "/jobs", Job, body=job)


def preview(job: JobRequest) -> Call[JobPreview]:
    """Read what a job would do."""
    return Call("POST", "/jobs:preview", JobPreview, body=job)


def read(job: int) -> Call[Job]:
    """Read a job with its counts."""
    return Call("GET", f"/jobs/{job}", Job)


def remove(job: int) -> Call[Nothing]:
    """Delete a job that is over."""
    return Call("DELETE", f"/jobs/{job}", Nothing)


def steer(job: int, verb: Literal["pause", "continue", "stop", "approve"]) -> Call[Job]:
    """Pause, continue or stop a job, or let its next stage begin."""
    return Call("POST", f"/jobs/{job}:{verb}", Job)


def retry(job: int, states: Sequence[ExecutionState] = ()) -> Call[Job]:
    """Try failed executions again."""
    return Call("POST", f"/jobs/{job}:retry", Job, body=RetryChoice(states=list(states) or None))


def executions(job: int, state: ExecutionState | None = None, limit: int = 500) -> Call[ExecutionPage]:
    """List what happened on each device."""
    query = {"limit": limit, **({"state": state} if state else {})}
    return Call("GET", f"/jobs/{job}/executions", ExecutionPage, query)


def results(job: int) -> str:
    """Return the path of the results as CSV, for `download`."""
    return f"/jobs/{job}/executions:export"
