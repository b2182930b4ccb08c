"""The audit log: who changed what, when, from where. Rows are only added; the database itself refuses changes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, Row, delete, insert, select

from fleet.adapters.sql.schema import AUDIT
from fleet.adapters.sql.transaction import Sql

LARGEST_VALUE = 16_000
"""Characters of `before` or `after` as JSON; a larger one is replaced by a note."""
_AT_ONCE = 5_000

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks for a change, and from where."""

    tenant: int
    actor: str
    source: str
    request: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of the log; `at` is in milliseconds since 1970."""

    id: int
    at: int
    actor: str
    source: str
    action: str
    object: str
    before: Values | None
    after: Values | None
    request: str


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which rows are meant; empty texts and None mean all. Times are milliseconds since 1970, `until` is excluded."""

    actor: str = ""
    action: str = ""
    object: str = ""
    since: int | None = None
    until: int | None = None


class AuditRows:
    """Writes and reads the audit log.

    Args:
        sql: The database, or the transaction of the change.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def add(
        self, origin: Origin, at: int, action: str, object_: str, before: Values | None, after: Values | None
    ) -> None:
        """Add a row; see `AuditEntry`."""
        values = {
            "tenant": origin.tenant,
            "at": at,
            "actor": origin.actor[:100],
            "source": origin.source[:64],
            "action": action[:63],
            "object": object_[:200],
            "before": _bounded(before),
            "after": _bounded(after),
            "request": origin.request[:64],
        }
        async with self._sql.writing() as connection:
            await connection.execute(insert(AUDIT).values(values))

    async def page(self, tenant: int, wanted: AuditFilter, before: int | None, limit: int) -> list[AuditEntry]:
        """Return a tenant's newest rows with ids below `before`, at most `limit`, the newest first."""
        found = select(AUDIT).where(AUDIT.c.tenant == tenant)
        if before is not None:
            found = found.where(AUDIT.c.id < before)
        for column in ("actor", "action", "object"):
            if value := getattr(wanted, column):
                found = found.where(AUDIT.c[column] == value)
        if wanted.since is not None:
            found = found.where(AUDIT.c.at >= wanted.since)
        if wanted.until is not None:
            found = found.where(AUDIT.c.at < wanted.until)
        async with self._sql.reading() as connection:
            rows = await connection.execute(found.order_by(AUDIT.c.id.desc()).limit(limit))
            return [_entry(row) for row in rows]

    async def tidy(self, before: int) -> int:
        """Delete rows of all tenants from before a time, some thousand at once; return how many.

        The database keeps those of the last 30 days in any case.
        """
        old = select(AUDIT.c.id).where(AUDIT.c.at < before).order_by(AUDIT.c.at).limit(_AT_ONCE)
        async with self._sql.writing() as connection:
            deleted = await connection.execute(delete(AUDIT).where(AUDIT.c.id.in_(old)))
            return cast("CursorResult[Any]", deleted).rowcount


def _bounded(values: Values | None) -> Values | None:
    if values is None:
        return None
    size = len(json.dumps(values))
    return dict(values) if size <= LARGEST_VALUE else {"left_out": f"{size} characters"}


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(row.id, row.at, row.actor, row.source, row.action, row.object, row.before, row.after, row.request)
