"""`/v1/tokens`: bearer tokens of people and programs."""

import secrets
from typing import Annotated

from fastapi import Path, Request, Response

from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.audit_rows import Origin
from fleet.adapters.sql.token_rows import FIRST_TENANT, NameTaken, TokenRow, TokenRows
from fleet.core.permissions import EVERY_SCOPE, SCOPES, TOKENS_WRITE
from fleet.roles.control.access import Principal, Who, digest_of_token, milliseconds, source_of
from fleet.roles.control.changes import OpenChange
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.first_token import wrong_code
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.request_ids import request_id
from fleet.roles.control.routing import OPEN, RouteNotes, RouteOptions, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.shapes import ListPage, milliseconds_of, time_of, time_or_none
from fleet.wire.control.tokens import FirstToken, MadeToken, NewToken, Token

TokenId = Annotated[int, Path(ge=1, le=2**53)]
MOST_TOKENS = 1_000
"""Of one tenant."""
_LARGEST_CODE = 4_096
"""Bytes of a request with a code: whoever sends it needs no token."""
_PREFIX = "flt_"


class TokensRoutes:
    """Lists, makes and revokes tokens, and makes the first one by a one-time code."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._rows = TokenRows(services.database)
        routes.add("GET /tokens", self.list_tokens, TOKENS_WRITE)
        routes.add("POST /tokens", self.make, TOKENS_WRITE, model=MadeToken, status=201)
        notes = RouteNotes(refusals=(403,))
        code = RouteOptions(
            model=MadeToken, status=201, largest_body=_LARGEST_CODE, gate=services.first_token.admit, notes=notes
        )
        routes.add("POST /tokens:first", self.make_first, OPEN, **code)
        routes.add("GET /tokens/{token}", self.read, TOKENS_WRITE)
        routes.add("DELETE /tokens/{token}", self.revoke, TOKENS_WRITE, status=204)

    async def list_tokens(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Token]:
        """Return the tokens, without their secrets."""
        place = self._services.cursors.read(who, "tokens", cursor)
        after = int(str(place[0])) if place else 0
        found = await self._rows.page(who.tenant, after, limit + 1)
        more = self._services.cursors.write(who, "tokens", [found[limit - 1].id]) if len(found) > limit else None
        return ListPage(items=[_shown(one) for one in found[:limit]], next=more)

    async def read(self, who: Who, token: TokenId) -> Token:
        """Return a token, without its secret."""
        found = await self._rows.read(who.tenant, token)
        if found is None:
            raise not_found("token")
        return _shown(found)

    async def make(self, who: Who, wanted: NewToken, request: Request) -> Response:
        """Make a token. Its secret is in this answer only."""
        expires = _checked(who, wanted)
        async with self._services.changes.begin(request) as change:
            if await TokenRows(change.sql).count(who.tenant) >= MOST_TOKENS:
                raise Problem(409, "too-many-tokens", f"a tenant has at most {MOST_TOKENS} tokens")
            return await _add(change, who.tenant, wanted.name, sorted(set(wanted.scopes)), expires)

    async def make_first(self, given: FirstToken, request: Request) -> Response:
        """Make the first token, with all scopes, by the code that control shows on its console."""
        code = self._services.first_token
        if not code.matches(given.code):
            raise wrong_code()
        origin = Origin(FIRST_TENANT, "code", source_of(request), request_id(request))
        async with self._services.changes.begin(request, origin) as change:
            if await TokenRows(change.sql).any_exist() or await AccountRows(change.sql).any_exist():
                raise Problem(403, "wrong-code", "there is a token or an account already")
            answer = await _add(change, FIRST_TENANT, given.name, SCOPES, None)
        code.spend()
        return answer

    async def revoke(self, who: Who, token: TokenId, request: Request) -> Response:
        """Revoke a token and end its streams. Other processes of control refuse it after at most two seconds."""
        async with self._services.changes.begin(request) as change:
            rows = TokenRows(change.sql)
            found = await rows.read(who.tenant, token)
            if found is None or not await rows.remove(who.tenant, token):
                raise not_found("token")
            await change.audit("token.revoke", f"token/{token}", before=_values(found))
            answer = change.answer(status=204)
        self._services.access.forget(token)
        self._services.following.forget_tokens([token])
        await self._services.voice.end("token", token)
        return answer


async def _add(
    change: OpenChange, tenant: int, name: str, scopes: "list[str] | tuple[str, ...]", expires: int | None
) -> Response:
    secret = _PREFIX + secrets.token_urlsafe(32)
    try:
        row = await TokenRows(change.sql).add(tenant, name, digest_of_token(secret), scopes, milliseconds(), expires)
    except NameTaken as error:
        raise Problem(409, "name-taken", str(error)) from error
    await change.audit("token.create", f"token/{row.id}", after=_values(row))
    made = MadeToken(token=secret, **_shown(row).model_dump())
    location = {"Location": f"/v1/tokens/{row.id}", "Cache-Control": "no-store"}
    return change.answer(made, 201, headers=location, stored=made.model_copy(update={"token": None}))


def _checked(who: Principal, wanted: NewToken) -> int | None:
    """Return when the new token expires.

    Raises:
        Problem: It would have a scope that does not exist or that its maker lacks, or outlive its maker's.
    """
    unknown = sorted(set(wanted.scopes) - EVERY_SCOPE)
    if unknown:
        raise Problem(422, "unknown-scope", f"there is no scope {unknown[0]}; there are: {', '.join(SCOPES)}")
    beyond = sorted(set(wanted.scopes) - who.scopes)
    if beyond:
        raise Problem(403, "scope-missing", f"a token cannot give what it has not: {', '.join(beyond)}")
    expires = milliseconds_of(wanted.expires)
    if expires is not None and expires <= milliseconds():
        raise Problem(422, "invalid", "expires must be in the future")
    if who.token and who.expires is not None and (expires is None or expires > who.expires):
        raise Problem(403, "outlives", "a token cannot make one that expires later than itself")
    return expires


def _values(row: TokenRow) -> dict[str, object]:
    expires = time_or_none(row.expires)
    return {"name": row.name, "scopes": sorted(row.scopes), "expires": expires.isoformat() if expires else None}


def _shown(row: TokenRow) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        scopes=sorted(row.scopes),
        created=time_of(row.created),
        expires=time_or_none(row.expires),
        last_used=time_or_none(row.last_used),
    )
