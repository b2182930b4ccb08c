"""`/v1/jobs/{job}/executions`: what happened on each device."""

import csv
import io
from collections.abc import AsyncIterator, Iterable
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from fleet.adapters.sql.job_rows import ExecutionRow, JobRow, JobRows, sort_key
from fleet.core.permissions import JOBS_READ
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.problems import not_found
from fleet.roles.control.routes.jobs import JobId
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.device_file import as_cell
from fleet.wire.control.jobs import JobExecution
from fleet.wire.control.shapes import ListPage, time_of
from fleet.wire.job_states import ExecutionState

State = Annotated[ExecutionState | None, Query(description="Only executions in this state.")]
_COLUMNS = ("device", "state", "attempts", "retries", "text", "since")
_AT_ONCE = 500


class JobExecutionRoutes:
    """Shows what happened on each device of a job."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._database, self._cursors = services.database, services.cursors
        routes.add("GET /jobs/{job}/executions", self.list, JOBS_READ)
        routes.add(
            "GET /jobs/{job}/executions:export",
            self.export,
            JOBS_READ,
            model=None,
            notes=RouteNotes(gives=("text/csv",)),
        )

    async def list(
        self, who: Who, job: JobId, state: State = None, limit: Limit = 100, cursor: Cursor = ""
    ) -> ListPage[JobExecution]:
        """Return executions in the order of MACs; with a state, in the order in which they got it."""
        await self._job(who, job)
        noun = f"executions {job} {state}"
        after = [int(str(one)) for one in self._cursors.read(who, noun, cursor)]
        found = await JobRows(self._database, who.tenant).executions(job, state, after, limit + 1)
        more = self._cursors.write(who, noun, sort_key(found[limit - 1], state)) if len(found) > limit else None
        return ListPage(items=[_shape(row) for row in found[:limit]], next=more)

    async def export(self, who: Who, job: JobId, state: State = None) -> StreamingResponse:
        """Return the executions as CSV. What a spreadsheet takes for a formula is marked as text."""
        row = await self._job(who, job)
        headers = {"Content-Disposition": f'attachment; filename="job-{row.id}.csv"'}
        lines = self._lines(who, row, state)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8; header=present", headers=headers)

    async def _lines(self, who: Principal, job: JobRow, state: ExecutionState | None) -> AsyncIterator[str]:
        yield _csv([_COLUMNS])
        rows, after = JobRows(self._database, who.tenant), list[int]()
        while found := await rows.executions(job.id, state, after, _AT_ONCE):
            shapes = [_shape(row) for row in found]
            yield _csv(
                (
                    one.device,
                    one.state,
                    one.attempts,
                    one.retries,
                    as_cell(one.text),
                    one.since and one.since.isoformat(),
                )
                for one in shapes
            )
            after = sort_key(found[-1], state)

    async def _job(self, who: Principal, job: int) -> JobRow:
        row = await JobRows(self._database, who.tenant).read(job)
        if row is None:
            raise not_found("job")
        return row


def _shape(row: ExecutionRow) -> JobExecution:
    return JobExecution(
        device=row.mac,
        state=row.state,
        attempts=row.attempt,
        retries=row.retries,
        text=row.text,
        since=None if row.state in ("queued", "waiting", "verifying") else time_of(row.place),
    )


def _csv(rows: Iterable[Iterable[object]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()
