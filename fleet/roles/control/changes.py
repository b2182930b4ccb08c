"""Changes: what a request changes, its rows in the audit log and its kept answer are one transaction."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel

from fleet.adapters.sql.audit_rows import AuditRows, Origin
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.idempotency_rows import IdempotencyRows
from fleet.adapters.sql.transaction import Transaction
from fleet.roles.control.access import milliseconds, principal_of, source_of
from fleet.roles.control.idempotency import held_key, keep
from fleet.roles.control.request_ids import request_id


class OpenChange:
    """An open transaction of a request; `Changes.begin` commits it.

    `sql` stands in place of the database: whatever is given it becomes part of the transaction.
    """

    def __init__(self, sql: Transaction, origin: Origin, request: Request) -> None:
        self.sql = sql
        self.kept: Response | None = None
        self._origin, self._request = origin, request

    async def audit(
        self,
        action: str,
        object_: str,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Write what happens into the audit log.

        Args:
            action: Noun and verb, such as `token.create`.
            object_: Noun and id, such as `token/7`.
            before: What differs, as it was. No secrets.
            after: What differs, as it is.
        """
        await AuditRows(self.sql).add(self._origin, milliseconds(), action, object_, before, after)

    async def pin(self) -> None:
        """Say that after this transaction comes what cannot be undone: the request will never run again."""
        held = held_key(self._request)
        if held is not None:
            await IdempotencyRows(self.sql).begin(held, milliseconds())

    def answer(
        self,
        model: BaseModel | None = None,
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        stored: BaseModel | None = None,
    ) -> Response:
        """Return the answer, and keep it for a repeated request.

        Args:
            model: The body; without one there is none.
            status: Of the answer.
            headers: Of the answer.
            stored: What a repeated request gets in place of `model`, where that holds a secret.
        """
        self.kept = _response(stored or model, status, headers)
        return _response(model, status, headers)


class Changes:
    """Opens changes.

    Args:
        database: Where changes are made.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def begin(self, request: Request, origin: Origin | None = None) -> AsyncIterator[OpenChange]:
        """Open a change; the end of the block commits it, an exception undoes all of it.

        Inside the block, use no other connection for writing: SQLite has one writer.

        Args:
            request: Was admitted, unless `origin` is given.
            origin: Who asks, where that is no token.

        Raises:
            Unavailable: The database does not answer.
        """
        async with self._database.writing() as connection:
            change = OpenChange(Transaction(connection), origin or _origin(request), request)
            yield change
            if change.kept is not None:
                await keep(change.sql, request, change.kept)


def _origin(request: Request) -> Origin:
    who = principal_of(request)
    return Origin(who.tenant, who.actor, source_of(request), request_id(request))


def _response(model: BaseModel | None, status: int, headers: Mapping[str, str] | None) -> Response:
    named = dict(headers or {})
    if model is None:
        return Response(None, status, named)
    return Response(model.model_dump_json().encode(), status, named, "application/json")
