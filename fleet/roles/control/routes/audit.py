"""`/v1/audit`: who changed what."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse

from fleet.adapters.sql.audit_rows import AuditEntry, AuditFilter, AuditRows
from fleet.core.permissions import AUDIT_READ
from fleet.roles.control.access import Who
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.audit import AuditRecord
from fleet.wire.control.shapes import GivenTime, ListPage, milliseconds_of, time_of

Text = Annotated[str, Query(max_length=200)]
Instant = Annotated[GivenTime | None, Query(description="RFC 3339, with an offset.")]
_AT_ONCE = 500


async def _wanted(
    actor: Text = "", action: Text = "", object: Text = "", since: Instant = None, until: Instant = None
) -> AuditFilter:
    return AuditFilter(actor, action, object, milliseconds_of(since), milliseconds_of(until))


Wanted = Annotated[AuditFilter, Depends(_wanted)]


class AuditRoutes:
    """Shows the audit log of a tenant."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._rows, self._cursors = AuditRows(services.database), services.cursors
        routes.add("GET /audit", self.list_entries, AUDIT_READ)
        routes.add("GET /audit:export", self.export, AUDIT_READ, notes=RouteNotes(gives=("application/x-ndjson",)))

    async def list_entries(
        self, who: Who, wanted: Wanted, limit: Limit = 50, cursor: Cursor = ""
    ) -> ListPage[AuditRecord]:
        """Return the log, the newest first."""
        place = self._cursors.read(who, "audit", cursor)
        before = int(str(place[0])) if place else None
        found = await self._rows.page(who.tenant, wanted, before, limit + 1)
        more = self._cursors.write(who, "audit", [found[limit - 1].id]) if len(found) > limit else None
        return ListPage(items=[_record(one) for one in found[:limit]], next=more)

    async def export(self, who: Who, wanted: Wanted) -> StreamingResponse:
        """Return the whole log as NDJSON, the newest first."""
        return StreamingResponse(self._lines(who.tenant, wanted), media_type="application/x-ndjson")

    async def _lines(self, tenant: int, wanted: AuditFilter) -> AsyncIterator[str]:
        before: int | None = None
        while found := await self._rows.page(tenant, wanted, before, _AT_ONCE):
            yield "".join(f"{_record(one).model_dump_json()}\n" for one in found)
            before = found[-1].id


def _record(entry: AuditEntry) -> AuditRecord:
    return AuditRecord(
        id=entry.id,
        at=time_of(entry.at),
        actor=entry.actor,
        source=entry.source,
        action=entry.action,
        object=entry.object,
        before=None if entry.before is None else dict(entry.before),
        after=None if entry.after is None else dict(entry.after),
        request=entry.request,
    )
