"""`Idempotency-Key`: a request that is repeated with its key gets the answer of the first one."""

import hashlib
import logging
import re
import secrets

from fastapi import Request
from fastapi.responses import Response

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.idempotency_rows import (
    IdempotencyRows,
    KeptAnswer,
    KeyInUse,
    KeyMismatch,
    OutcomeUnknown,
    Reservation,
)
from fleet.adapters.sql.transaction import Sql
from fleet.ground.errors import Unavailable
from fleet.roles.control.access import Principal, milliseconds
from fleet.roles.control.problems import Problem
from fleet.roles.control.routing import Handle

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LARGEST_ANSWER = 256_000
"""Bytes that are kept; a repeated request with a larger answer is told that it was answered."""
_KEY = re.compile(r"[!-~]{1,200}")
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS = ("etag", "location", "content-type")
_FIRST_REFUSAL = 400


class Idempotency:
    """Runs a request once for each key.

    Args:
        database: Keeps keys and answers.
    """

    def __init__(self, database: Database) -> None:
        self._rows = IdempotencyRows(database)

    async def __call__(self, request: Request, body: bytes, handle: Handle) -> Response:
        """Answer a request that was admitted.

        Raises:
            Problem: The key is malformed (400), its request is under way or may have had its effect (409), or it
                belongs to another request (422).
        """
        sent = request.headers.getlist(HEADER)
        who = getattr(request.state, "principal", None)
        if not sent or request.method not in _METHODS or not isinstance(who, Principal):
            return await handle(request)
        key = ", ".join(sent)
        if not _KEY.fullmatch(key):  # Two headers make a space in it.
            raise Problem(400, "bad-key", f"{HEADER} has 1 to 200 visible ASCII characters, and is sent once")
        held = Reservation(who.tenant, _own_key(who, key), secrets.token_hex(16))
        kept = await self._reserve(held, _digest(request, body))
        if kept is not None:
            return Response(kept.body.encode(), kept.status, {**kept.headers, REPLAYED: "true"})
        request.state.held_key = held
        return await self._run(request, handle, held)

    async def _run(self, request: Request, handle: Handle, held: Reservation) -> Response:
        settled = False
        try:
            response = await handle(request)
            settled = held_key(request) is None
            if not settled and response.status_code < _FIRST_REFUSAL:
                await self._rows.settle(held, _kept(response), milliseconds())
                settled = True
            return response
        finally:
            if not settled:
                await self._release(held)

    async def _reserve(self, held: Reservation, digest: str) -> KeptAnswer | None:
        try:
            return await self._rows.reserve(held, digest, milliseconds())
        except KeyMismatch as error:
            raise Problem(422, "key-mismatch", str(error)) from error
        except KeyInUse as error:
            raise Problem(409, "key-in-use", str(error), headers={"Retry-After": "2"}) from error
        except OutcomeUnknown as error:
            raise Problem(409, "outcome-unknown", str(error)) from error

    async def _release(self, held: Reservation) -> None:
        try:
            await self._rows.release(held)
        except Unavailable as error:
            log.info("a key stays reserved for some seconds", extra={"reason": str(error)})


def held_key(request: Request) -> Reservation | None:
    """Return the key that a request holds and that has no answer yet."""
    found = getattr(request.state, "held_key", None)
    return found if isinstance(found, Reservation) else None


async def keep(sql: Sql, request: Request, response: Response) -> None:
    """Keep the answer of a request as part of a transaction, if the request holds a key."""
    held = held_key(request)
    if held is not None:
        await IdempotencyRows(sql).settle(held, _kept(response), milliseconds())
        request.state.held_key = None


def _own_key(who: Principal, key: str) -> str:
    """Return the key in a space of its principal's: another token of the tenant must not get his answers."""
    return hashlib.sha256(f"{who.actor}\n{key}".encode()).hexdigest()


def _digest(request: Request, body: bytes) -> str:
    head = f"{request.method}\n{request.url.path}?{request.url.query}\n{request.headers.get('if-match', '')}\n"
    return hashlib.sha256(head.encode("utf-8", "replace") + body).hexdigest()


def _kept(response: Response) -> KeptAnswer:
    headers = {name: value for name, value in response.headers.items() if name.lower() in _KEPT_HEADERS}
    body = bytes(getattr(response, "body", b""))
    if len(body) > LARGEST_ANSWER:
        return KeptAnswer(
            409, '{"code": "answered", "detail": "answered before; the answer was too large to keep"}', {}
        )
    return KeptAnswer(response.status_code, body.decode(), headers)
