"""`/v1/announcements`: texts that devices are told, also while they are idle. Each is a job."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from fastapi import Request, Response

from fleet.adapters.sql.job_rows import JobRows, NewJob
from fleet.adapters.sql.job_targets import JobTargets
from fleet.core.job_kinds.announce import announce_terms
from fleet.core.permissions import DEVICES_COMMAND, JOBS_READ
from fleet.roles.control.access import Principal, Who, milliseconds
from fleet.roles.control.announcement_reach import AnnouncementReach
from fleet.roles.control.device_dry_run import DeviceDryRun
from fleet.roles.control.device_queries import read_query
from fleet.roles.control.job_policies import target_of
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routes.jobs import MOST_ACTIVE, JobId, shape_of
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.spoken_texts import check_spoken
from fleet.wire.announcements import WAYS
from fleet.wire.control.announcements import (
    AnnouncementPreview,
    AnnouncementRequest,
    AnnouncementState,
    WayCount,
)
from fleet.wire.control.jobs import JobPolicy, SkipCount
from fleet.wire.operator_calls import OFFLINE

NONE_LEFT: Final = "no announcement is left for today"
_NAME = 100


class AnnouncementRoutes:
    """Makes and shows announcements; they are steered as jobs."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._own, self._dry_run = services, OwnDevices(services), DeviceDryRun(services)
        routes.add("POST /announcements", self.add, DEVICES_COMMAND, model=AnnouncementState, status=201)
        routes.add("POST /announcements:preview", self.preview, DEVICES_COMMAND, repeatable=True)
        routes.add("GET /announcements/{announcement}", self.read, JOBS_READ)

    async def add(self, request: Request, who: Who, body: AnnouncementRequest) -> Response:
        """Tell devices a text: each by the best way that it has, also while nobody has woken it.

        It is a job: pause, stop and follow it under `/v1/jobs`, where `/executions` has the receipt of each device. A
        tenant has a number of announcements a day (FLEET_ANNOUNCEMENTS_DAILY).
        """
        now = milliseconds()
        query = await self._query(who, body)
        async with self._services.changes.begin(request) as change:
            rows = JobRows(change.sql, who.tenant)
            await self._check_limits(rows, now)
            row = await rows.add(_job(body, query, now, who.actor))
            # The words themselves are a conversation, and no part of the audit log.
            about = body.model_dump(exclude={"text"}, exclude_defaults=True)
            await change.audit("announcement.create", f"job/{row.id}", after={**about, "characters": len(body.text)})
            headers = {"Location": f"/v1/announcements/{row.id}"}
            return change.answer(AnnouncementState(job=shape_of(row), receipts={}), 201, headers=headers)

    async def preview(self, who: Who, body: AnnouncementRequest) -> AnnouncementPreview:
        """Return by which way how many devices would be told now, and why others would not; tell nobody."""
        now, database = milliseconds(), self._services.database
        job = _job(body, await self._query(who, body), now, who.actor)
        policy = JobPolicy.model_validate(dict(job.policy))
        targets = JobTargets(database, target_of(who.tenant, job.query, announce_terms(job.body), policy, now))
        counts = await targets.count()
        left = max(
            0, self._services.settings.announcements_daily - await _made_today(JobRows(database, who.tenant), now)
        )
        ready = await self._dry_run.kinds(who.tenant, targets, counts, timezones=bool(body.quiet))
        found = AnnouncementReach(body, policy.idle, self._services.settings, now).count(ready)
        found["waiting", OFFLINE] += counts.reached - counts.ready
        found += Counter({("skipped", reason): count for reason, count in counts.skipped.items()})
        if not left:
            found = Counter({("skipped", NONE_LEFT): counts.devices})

        def of(fate: str) -> dict[str, int]:
            return {about: found[one, about] for one, about in sorted(found) if one == fate and found[one, about]}

        by_way = of("told")
        return AnnouncementPreview(
            devices=counts.devices,
            online=counts.online,
            skipped=_counts(of("skipped")),
            ways=[WayCount(way=way, devices=by_way[way]) for way in WAYS if way in by_way],
            waiting=_counts(of("waiting")),
            left_today=left,
        )

    async def _query(self, who: Principal, body: AnnouncementRequest) -> str:
        """Return which devices are meant.

        Raises:
            Problem: The query cannot be read (400), the device is none of the tenant (404), or the text is to be spoken
                and nothing of it can be (422).
        """
        if set(body.ways) != {"alert"}:
            check_spoken(body.text)
        query = f"mac={await self._own.known(who, body.device)}" if body.device else body.query or ""
        read_query(query)
        return query

    async def read(self, who: Who, announcement: JobId) -> AnnouncementState:
        """Return an announcement, with how many devices were told by which way."""
        rows = JobRows(self._services.database, who.tenant)
        row = await rows.read(announcement)
        if row is None or row.kind != "announce":
            raise not_found("announcement")
        return AnnouncementState(job=shape_of(row), receipts=dict(await rows.answers(announcement)))

    async def _check_limits(self, rows: JobRows, now: int) -> None:
        if await rows.active() >= MOST_ACTIVE:
            raise Problem(409, "too-many-jobs", f"at most {MOST_ACTIVE} jobs are not over at a time")
        most = self._services.settings.announcements_daily
        if await _made_today(rows, now) >= most:
            raise Problem(429, "too-many-announcements", f"at most {most} announcements a day, counted in UTC")


async def _made_today(rows: JobRows, now: int) -> int:
    midnight = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return await rows.made("announce", round(midnight.timestamp() * 1000))


def _counts(found: Mapping[str, int]) -> list[SkipCount]:
    return [SkipCount(reason=reason, devices=count) for reason, count in found.items()]


def _job(body: AnnouncementRequest, query: str, now: int, actor: str) -> NewJob:
    policy = JobPolicy(
        rate=body.rate,
        window=body.window,
        halt_share=body.halt_share,
        idle={"speech", "wake"}.isdisjoint(body.ways),
        quiet=body.quiet,
        expires_seconds=body.expires_seconds,
    )
    return NewJob(
        name=body.text[:_NAME],
        kind="announce",
        body={"text": body.text, "language": body.language, "ways": [one for one in WAYS if one in body.ways]},
        query=query,
        continuous=False,
        policy=policy.model_dump(),
        created=now,
        created_by=actor[:100],
        expires=now + body.expires_seconds * 1000,
    )
