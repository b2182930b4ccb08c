"""`/v1/jobs`: jobs over many devices."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Path, Request, Response

from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.job_rows import ACTIVE, DELETED, OVER, JobRow, JobRows, NewJob
from fleet.adapters.sql.job_targets import JobTargets
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.job_kinds.directory import terms_of
from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import JOBS_READ, JOBS_WRITE
from fleet.core.user_tools import user_tool
from fleet.roles.control.access import Principal, Who, milliseconds
from fleet.roles.control.changes import OpenChange
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.device_dry_run import preview_of
from fleet.roles.control.device_queries import read_query
from fleet.roles.control.job_orders import order_shape, stored_body
from fleet.roles.control.job_policies import policy_of, states_to_retry, target_of, terms_of_job
from fleet.roles.control.job_tasks.announce import take_back
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.desired import check_tools
from fleet.roles.control.routes.device_calls import fit, shown
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.control.images import AssetsOrder, FirmwareOrder
from fleet.wire.control.jobs import (
    LONGEST_LIFE,
    Job,
    JobCounts,
    JobPolicy,
    JobPreview,
    JobRequest,
    RetryChoice,
)
from fleet.wire.control.shapes import ListPage, milliseconds_of, time_of, time_or_none
from fleet.wire.job_states import EXECUTION_STATES, JobState

JobId = Annotated[int, Path(ge=1, lt=2**62)]
MOST_ACTIVE = 100
"""Jobs of a tenant that are not over."""
_SAMPLED = 20
_FRESH_COUNTS = dict.fromkeys(("stage_ok", "stage_failed", "recent_ended", "recent_failed"), 0)

Steer = Callable[[JobRow], dict[str, Any]]


class JobRoutes:
    """Makes and steers jobs; the leader of control does their work."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        self._lists = ToolLists(services.store)
        routes.add("GET /jobs", self.list, JOBS_READ)
        routes.add("POST /jobs", self.add, JOBS_WRITE, model=Job, status=201)
        routes.add("POST /jobs:preview", self.preview, JOBS_WRITE, repeatable=True)
        routes.add("GET /jobs/{job}", self.read, JOBS_READ, model=Job)
        routes.add("DELETE /jobs/{job}", self.remove, JOBS_WRITE, model=None, status=204, notes=VERSIONED)
        routes.add("POST /jobs/{job}:pause", self.pause, JOBS_WRITE, model=Job, notes=VERSIONED)
        routes.add("POST /jobs/{job}:continue", self.resume, JOBS_WRITE, model=Job, notes=VERSIONED)
        routes.add("POST /jobs/{job}:stop", self.stop, JOBS_WRITE, model=Job, notes=VERSIONED)
        routes.add("POST /jobs/{job}:approve", self.approve, JOBS_WRITE, model=Job, notes=VERSIONED)
        routes.add("POST /jobs/{job}:retry", self.retry, JOBS_WRITE, model=Job, notes=VERSIONED)

    async def list(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Job]:
        """Return the jobs, the newest first."""
        place = self._services.cursors.read(who, "jobs", cursor)
        before = int(str(place[0])) if place else None
        found = await JobRows(self._database, who.tenant).page(before, limit + 1)
        more = self._services.cursors.write(who, "jobs", [found[limit - 1].id]) if len(found) > limit else None
        return ListPage(items=[shape_of(row) for row in found[:limit]], next=more)

    async def add(self, request: Request, who: Who, body: JobRequest) -> Response:
        """Make a job; it begins at once, or at `starts`.

        Its tool also needs devices:command, a dangerous one devices:dangerous.
        """
        now = milliseconds()
        starts = _start(body, now)
        stored = await stored_body(self._services, who.tenant, body, starts or now)
        await self._check(who, body, stored, now)
        async with self._services.changes.begin(request) as change:
            rows = JobRows(change.sql, who.tenant)
            if await rows.active() >= MOST_ACTIVE:
                raise Problem(409, "too-many-jobs", f"at most {MOST_ACTIVE} jobs are not over at a time")
            job = NewJob(
                name=body.name,
                kind=body.kind,
                body=stored,
                query=body.query,
                continuous=body.continuous,
                policy=body.policy.model_dump(),
                created=now,
                created_by=who.actor[:100],
                expires=(starts or now) + body.policy.expires_seconds * 1000,
                starts=starts,
                supersedes=body.supersedes or "",
            )
            row = await rows.add(job)
            after = body.model_dump(mode="json", exclude={"arguments"}, exclude_defaults=True)
            await change.audit("job.create", f"job/{row.id}", after={**after, "arguments": shown(body.arguments)})
            return change.answer(shape_of(row), 201, headers=_headers(row) | {"Location": f"/v1/jobs/{row.id}"})

    async def preview(self, who: Who, body: JobRequest) -> JobPreview:
        """Return what a job would do, and do nothing."""
        now = milliseconds()
        targets = await self._check(who, body, await stored_body(self._services, who.tenant, body, now), now)
        return preview_of(await targets.count())

    async def read(self, who: Who, job: JobId) -> Response:
        """Return a job with its counts."""
        row = await self._row(JobRows(self._database, who.tenant), job)
        body = shape_of(row).model_dump_json()
        return Response(body, headers=_headers(row), media_type="application/json")

    async def remove(self, request: Request, who: Who, job: JobId) -> Response:
        """Delete a job that is over, with what happened on each device."""
        async with self._services.changes.begin(request) as change:
            rows = JobRows(change.sql, who.tenant)
            row = await self._row(rows, job, lock=True)
            _check_version(request, row)
            if row.state not in OVER:
                raise Problem(409, "other-state", f"the job is {row.state}: stop it first")
            await rows.change(job, state=DELETED)
            await change.audit("job.delete", f"job/{job}", before={"name": row.name, "state": row.state})
            return change.answer(status=204)

    async def pause(self, request: Request, who: Who, job: JobId) -> Response:
        """Hand no more devices over; those under way get their outcomes."""
        return await self._steer(request, who, job, "pause", lambda row: _state(row, "paused", "running"))

    async def resume(self, request: Request, who: Who, job: JobId) -> Response:
        """Continue a job that was paused, or that halted: its failures until now do not count any more."""

        def steer(row: JobRow) -> dict[str, Any]:
            _allow(who, terms_of_job(row))
            return {**_state(row, "running", "paused", "halted"), **_FRESH_COUNTS, "reason": ""}

        return await self._steer(request, who, job, "continue", steer)

    async def stop(self, request: Request, who: Who, job: JobId) -> Response:
        """Stop a job; it cannot be continued. Devices that were not handed over are cancelled."""
        answer = await self._steer(request, who, job, "stop", lambda row: _state(row, "stopping", *ACTIVE))
        await take_back(self._database, self._services.store, who.tenant, job)
        return answer

    async def approve(self, request: Request, who: Who, job: JobId) -> Response:
        """Let the next stage begin now, whatever the present one still waits for."""

        def steer(row: JobRow) -> dict[str, Any]:
            _allow(who, terms_of_job(row))
            _state(row, "running", "paused")
            if row.stage >= len(policy_of(row).stages) - 1:
                raise Problem(409, "last-stage", "the job is in its last stage")
            return {"approved": row.stage + 1}

        return await self._steer(request, who, job, "approve", steer)

    async def retry(self, request: Request, who: Who, job: JobId, body: RetryChoice) -> Response:
        """Try failed executions again, once each, as far as they have failed until now."""

        def steer(row: JobRow) -> dict[str, Any]:
            _allow(who, terms_of_job(row))
            states = states_to_retry(row, body.states)
            if row.expires <= milliseconds():
                raise Problem(409, "expired", "the job has expired")
            after = _state(row, "running", "running", "paused", "halted", "done")
            kept = {} if row.state == "done" else {"state": row.state}
            bits = sum(1 << number for number, one in enumerate(EXECUTION_STATES) if one in states)
            return {**after, **kept, "retry_states": bits, "retry_until": milliseconds(), "ended": None}

        return await self._steer(request, who, job, "retry", steer)

    async def _steer(self, request: Request, who: Principal, job: int, verb: str, steer: Steer) -> Response:
        async def within(change: OpenChange) -> JobRow:
            rows = JobRows(change.sql, who.tenant)
            row = await self._row(rows, job, lock=True)
            _check_version(request, row)
            after = await rows.change(job, **steer(row))
            await change.audit(f"job.{verb}", f"job/{job}", before={"state": row.state}, after={"state": after.state})
            return after

        async with self._services.changes.begin(request) as change:
            after = await within(change)
            return change.answer(shape_of(after), headers=_headers(after))

    async def _row(self, rows: JobRows, job: int, *, lock: bool = False) -> JobRow:
        row = await rows.read(job, lock=lock)
        if row is None:
            raise not_found("job")
        return row

    async def _check(self, who: Principal, body: JobRequest, stored: Mapping[str, Any], now: int) -> JobTargets:
        """Return the devices of a job that may be made.

        Raises:
            Problem: A query cannot be read (400), a scope is missing (403), or the arguments do not fit (422).
        """
        for query in (body.query, *(one.query or "" for one in body.policy.stages)):
            read_query(query)
        terms = terms_of(body.kind, stored)
        _allow(who, terms)
        targets = JobTargets(self._database, target_of(who.tenant, body.query, terms, body.policy, now))
        if body.kind == "tool":
            await self._check_arguments(terms, targets)
        if body.shadow is not None:
            check_tools(body.shadow.desired.tools or {})
        if body.agent is not None and await AgentRows(self._database, who.tenant).read(body.agent) is None:
            raise not_found("agent")
        return targets

    async def _check_arguments(self, call: JobTerms, targets: JobTargets) -> None:
        """Check arguments against the schema that the first device with the tool has, of some that are connected."""
        known = user_tool(call.tool)
        for mac in [] if known else await targets.sample(_SAMPLED):
            listed = (tool for tool in await self._lists.read(mac_text(mac)) if tool.name == call.tool)
            known = next(listed, None)
            if known is not None:
                break
        if known is not None:
            fit(known, dict(call.arguments))


def _allow(who: Principal, terms: JobTerms) -> None:
    for scope in terms.scopes:
        if scope not in who.scopes:
            raise Problem(403, "scope-missing", f"the token has not the scope {scope}")


def _start(body: JobRequest, now: int) -> int | None:
    """Return when a job begins; None for at once.

    Raises:
        Problem: That is too far ahead (422).
    """
    starts = milliseconds_of(body.starts)
    if starts is not None and starts > now + LONGEST_LIFE * 1000:
        raise Problem(422, "invalid", "a job starts within 90 days")
    return starts if starts is not None and starts > now else None


def _headers(row: JobRow) -> dict[str, str]:
    return {"ETag": etag(row.version)}


def _check_version(request: Request, row: JobRow) -> None:
    if expected_version(request) not in (None, row.version):
        raise VersionConflict(f"the job has version {row.version}")


def _state(row: JobRow, after: JobState, *before: JobState) -> dict[str, Any]:
    """Return the change to a state, from one of others; one that has it already stays as it is.

    Raises:
        Problem: The job is in another state (409).
    """
    if row.state not in (*before, after):
        raise Problem(409, "other-state", f"the job is {row.state}")
    return {"state": after}


def shape_of(row: JobRow) -> Job:
    """Return a job as an answer."""
    terms = terms_of_job(row)
    return Job(
        id=row.id,
        name=row.name,
        kind=row.kind,
        tool=terms.tool,
        arguments=dict(terms.arguments),
        shadow=row.body.get("shadow"),
        agent=row.body.get("agent"),
        key=row.body.get("key", ""),
        firmware=order_shape(FirmwareOrder, row),
        assets=order_shape(AssetsOrder, row),
        query=row.query,
        continuous=row.continuous,
        policy=JobPolicy.model_validate(dict(row.policy), extra="ignore"),
        state=row.state,
        reason=row.reason,
        stage=row.stage + 1,
        devices=row.total,
        counts=JobCounts.model_validate(row.counts),
        created=time_of(row.created),
        created_by=row.created_by,
        starts=time_or_none(row.starts),
        supersedes=row.supersedes,
        expires=time_of(row.expires),
        ended=time_or_none(row.ended),
        version=row.version,
    )
